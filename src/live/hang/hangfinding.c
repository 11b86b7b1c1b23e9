/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "base/text/pythoncode.h"
#include "format/shared/block.h"
#include "live/hang/hang_parts.h"
#include "live/hub/jobstate.h"
#include "localize/cause.h"
#include "model/place/place.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NO_KEY "00000000000000000000000000000000"

static const struct {
	enum cause cause;
	enum confidence confidence;
	const char *place; /* the finding's name if no stack is known */
} reasons[REASON_CNT] = {
	[REASON_GONE] = { CAUSE_PROCESS_ENDED, CONFIDENCE_HIGH, "process ended" },
	[REASON_STOPPED] = { CAUSE_STOPPED, CONFIDENCE_HIGH,
			     "process stopped (SIGSTOP or a debugger)" },
	[REASON_KERNEL] = { CAUSE_KERNEL_WAIT, CONFIDENCE_MEDIUM,
			    "uninterruptible wait in the kernel" },
	[REASON_LOADER] = { CAUSE_LOADER_BLOCKED, CONFIDENCE_HIGH, "dataloader.next" },
	[REASON_BEHIND] = { CAUSE_RANK_BEHIND, CONFIDENCE_MEDIUM,
			    "between two marks of the iteration" },
	[REASON_NOT_ENTERED] = { CAUSE_NOT_ENTERED, CONFIDENCE_MEDIUM,
				 "on its way to a collective" },
	[REASON_ELSEWHERE] = { CAUSE_ELSEWHERE, CONFIDENCE_MEDIUM, "elsewhere than the others" },
	[REASON_ALONE] = { CAUSE_HANGS_ALONE, CONFIDENCE_MEDIUM, "in one function" },
};

static const char *place(const struct wire_state *state)
{
	switch (state->last_mark) {
	case MARK_DATALOADER:
		return "inside dataloader.next";
	case MARK_DATALOADER_END:
		return "after dataloader.next";
	case MARK_OPTIMIZER_BEGIN:
		return "inside optimizer.step";
	case MARK_OPTIMIZER:
		return "after optimizer.step";
	case MARK_BACKWARD:
		return "after a backward pass";
	default:
		return "after an iteration mark";
	}
}

static void append_awaited(struct str *line, const struct wire_where *where)
{
	static const char *const whose[AWAITED_BY_CNT] = {
		[AWAITED_LOADER] = "its loader's worker processes",
		[AWAITED_THREAD] = "its other threads",
		[AWAITED_CHILD] = "its child processes",
	};

	if (where != NULL && where->ended[0] != '\0')
		str_printf(line, "; a thread of it ended %.1f s ago, last seen in %s",
			   (double)where->ended_ago_ns / NSEC_PER_SEC, where->ended);
	if (where != NULL && where->awaited[0] != '\0')
		str_printf(line, "; %s are in %s", whose[where->awaited_by], where->awaited);
}

static void append_stack(struct str *line, const struct blocked *b, size_t i)
{
	const struct wire_entered *entered = hang_entered_last(b, i);
	const char *at = hang_innermost(b, i), *leaf = hang_waits_for(b, i);

	if (*at != '\0' || *leaf != '\0')
		str_printf(line, ", in %s%s%s", at, *at != '\0' && *leaf != '\0' ? " " : "", leaf);
	append_awaited(line, b->wheres[i]);
	if (entered != NULL)
		str_printf(line, "; of group %s it entered %s number %" PRId64 " last",
			   entered->group, entered->name, entered->number);
}

static const char *evidence_line(const struct blocked *b, size_t i)
{
	const struct wire_state *state = &b->states[i];
	struct str line = { 0 };
	const char *copy;

	str_printf(&line, "rank %d (pid %u): %s of step %" PRIu64 " since %.1f s", state->rank,
		   state->pid, place(state), state->step,
		   (double)(b->now_ns - state->last_ns) / NSEC_PER_SEC);
	if (hang_is_gone(state))
		str_append(&line, state->bye ? ", ended its program" : ", ended without notice");
	else if (hang_is_stopped(state))
		str_append(&line, ", stopped (state T)");
	else if (state->process == 'D')
		str_append(&line, ", waits in the kernel (state D)");
	else if (b->skipped && hang_is_running(state))
		str_append(&line, ", its iterations go on");
	append_stack(&line, b, i);
	copy = str_error(&line) == 0 ? arena_strdup(b->arena, str_borrow(&line)) : NULL;
	str_done(&line);
	return copy;
}

static int by_int(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* The functions of a stack. Returns 0 or -ENOMEM. */
static int split_stack(struct arena *arena, const char *stack, struct finding *ret)
{
	char *at = arena_strdup(arena, stack), *next;
	const char **frames = arena_calloc(arena, strlen(stack) + 1, sizeof(*frames));

	if (at == NULL || frames == NULL)
		return -ENOMEM;
	ret->stack = frames;
	for (; at != NULL; at = next) {
		next = strchr(at, '\n');
		if (next != NULL)
			*next++ = '\0';
		frames[ret->stack_cnt++] = at;
	}
	return 0;
}

/* Names the finding by the function in which the loader's children are. Returns 0 or -ENOMEM. */
static int name_children(const struct blocked *b, const char *place, struct finding *ret)
{
	size_t len;
	const char *function = place_innermost(place, &len);

	ret->name =
		arena_printf(b->arena, "%.*s (its loader's worker processes)", (int)len, function);
	return ret->name != NULL ? 0 : -ENOMEM;
}

/* Names the finding by the collective in which a victim waits, which the accused went past. */
static int name_skipped(const struct blocked *b, struct finding *ret)
{
	size_t i = 0;
	int error;

	while (i < b->cnt && hang_judge(b, i) != REASON_CNT)
		i++;
	if (i == b->cnt || *hang_innermost(b, i) == '\0')
		return 0;
	error = split_stack(b->arena, b->wheres[i]->stack, ret);
	if (error < 0)
		return error;
	ret->name = ret->stack[ret->stack_cnt - 1];
	ret->class = CLASS_COMM; /* the collective itself, not where the accused is */
	return 0;
}

/*
 * Cuts the stack below the user's innermost function, which says more than that of Python's own
 * modules in which it waits; the evidence has both. Of torch's functions the innermost says more.
 */
static void cut_to_users(struct finding *f)
{
	size_t cnt = f->stack_cnt;

	while (cnt > 0 && !pythoncode_is_users(f->stack[cnt - 1]) &&
	       strncmp(f->stack[cnt - 1], "torch/", strlen("torch/")) != 0)
		cnt--;
	f->stack_cnt = cnt > 0 ? cnt : f->stack_cnt;
}

/* Names the finding by the user's innermost function, if the innermost one is the same in all workers accused. */
static int name_function(const struct blocked *b, enum reason reason, size_t first,
			 struct finding *ret)
{
	const struct wire_where *where = b->wheres[first];
	int error;

	if (b->skipped && reason == REASON_NOT_ENTERED && hang_is_running(&b->states[first]))
		return name_skipped(b, ret);
	if (reason == REASON_GONE || reason == REASON_STOPPED || where == NULL ||
	    where->stack[0] == '\0')
		return 0;
	for (size_t i = first + 1; i < b->cnt; i++) {
		if (hang_judge(b, i) == reason &&
		    strcmp(hang_innermost(b, i), hang_innermost(b, first)) != 0)
			return 0;
	}
	error = split_stack(b->arena, where->stack, ret);
	if (error == 0) {
		cut_to_users(ret);
		ret->name = ret->stack[ret->stack_cnt - 1];
		ret->class = CLASS_HOST;
	}
	if (error == 0 && reason == REASON_LOADER && where->awaited[0] != '\0' &&
	    where->awaited_by == AWAITED_LOADER)
		error = name_children(b, where->awaited, ret);
	return error;
}

static int fill_finding(const struct blocked *b, enum reason reason, struct finding *ret)
{
	int *ranks = arena_calloc(b->arena, b->cnt, sizeof(*ranks));
	int *victims = arena_calloc(b->arena, b->cnt, sizeof(*victims));
	const char **evidence = arena_calloc(b->arena, b->cnt + 1, sizeof(*evidence));
	const struct cause_text *cause = cause_text(reasons[reason].cause);
	const char *title = arena_printf(b->arena, "The job hangs: %s", cause->title);
	int64_t since_ns = 0;

	if (ranks == NULL || victims == NULL || evidence == NULL || title == NULL)
		return -ENOMEM;
	*ret = (struct finding){ .id = cause->number,
				 .cause = cause->name,
				 .title = title,
				 .key = NO_KEY,
				 .name = reasons[reason].place,
				 .class = CLASS_IDLE,
				 .ranks = ranks,
				 .victims = victims,
				 .evidence = evidence,
				 .confidence = reasons[reason].confidence,
				 .advice = cause->advice,
				 .gain_pct = 100 };
	for (size_t i = 0; i < b->cnt; i++) {
		const struct wire_state *state = &b->states[i];
		enum reason own = hang_judge(b, i);

		if (own == REASON_CNT) {
			victims[ret->victim_cnt++] = state->rank;
			since_ns = MAX(since_ns, b->now_ns - state->last_ns);
		}
		if (own != reason)
			continue;
		if (ret->rank_cnt == 0 && name_function(b, reason, i, ret) < 0)
			return -ENOMEM;
		ranks[ret->rank_cnt++] = state->rank;
		since_ns = MAX(since_ns, b->now_ns - state->last_ns);
		evidence[ret->evidence_cnt] = evidence_line(b, i);
		if (evidence[ret->evidence_cnt++] == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < b->cnt; i++) {
		/* One victim's line is evidence of where the others wait. */
		if (hang_judge(b, i) != REASON_CNT)
			continue;
		evidence[ret->evidence_cnt] = evidence_line(b, i);
		if (evidence[ret->evidence_cnt++] == NULL)
			return -ENOMEM;
		break;
	}
	qsort(ranks, ret->rank_cnt, sizeof(*ranks), by_int);
	qsort(victims, ret->victim_cnt, sizeof(*victims), by_int);
	ret->all_workers = ret->rank_cnt == b->cnt;
	ret->time_ms_per_iteration = (double)since_ns / NSEC_PER_MSEC;
	ret->delta_ms_per_iteration = ret->gain_ms_per_iteration = ret->time_ms_per_iteration;
	return 0;
}

static int fill_findings(const struct blocked *b, struct report *report)
{
	struct finding *findings = arena_calloc(b->arena, REASON_CNT, sizeof(*findings));

	if (findings == NULL)
		return -ENOMEM;
	report->findings = findings;
	for (int reason = 0; reason < REASON_CNT; reason++) {
		struct finding finding;
		int ret = fill_finding(b, (enum reason)reason, &finding);

		if (ret < 0)
			return ret;
		if (finding.rank_cnt > 0)
			findings[report->finding_cnt++] = finding;
	}
	return 0;
}

/* What was not recorded, and if the report is inconclusive, one line for each rank. */
static int fill_notes(const struct blocked *b, bool blind, struct report *report)
{
	const char **notes = arena_calloc(b->arena, b->cnt + 1, sizeof(*notes));

	if (notes == NULL)
		return -ENOMEM;
	report->notes = notes;
	if (blind)
		notes[report->note_cnt++] =
			"the last collectives may not be recorded: they cost more than the budget, or "
			"their overhead was being measured when the job stopped";
	if (report->verdict == VERDICT_ABNORMAL)
		return 0;
	for (size_t i = 0; i < b->cnt; i++) {
		notes[report->note_cnt] = evidence_line(b, i);
		if (notes[report->note_cnt++] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t greatest_step(const struct blocked *b)
{
	uint64_t step = 0;

	for (size_t i = 0; i < b->cnt; i++)
		step = MAX(step, b->states[i].step);
	return step;
}

static const char *reason_of(const struct blocked *b)
{
	if (b->all_load)
		return "no iteration ends any more: no loader returns a batch";
	if (b->skipped)
		return "some ranks wait in a collective that others have not entered";
	return b->cnt == 1 ? "no iteration ends any more"
			   : "no iteration ends any more, and some ranks differ from the others";
}

int hang_fill_report(const struct blocked *b, bool blind, struct report *report)
{
	int ret = fill_findings(b, report);

	jobstate_fill_report(b->states, b->cnt, report);
	report->workers_analyzed = (int)b->cnt;
	report->job_id = "live";
	report->rank_source = "the job's environment";
	report->trigger = (struct report_trigger){
		.present = true,
		.kind = "blocked",
		.baseline_iteration_ms = report->iteration_ms,
		.step = b->cnt > 0 ? (int64_t)b->front / 4 : 0,
	};
	if (ret < 0)
		return ret;
	if (report->finding_cnt > 0) {
		report->verdict = VERDICT_ABNORMAL;
		report->reason = reason_of(b);
		return fill_notes(b, blind, report);
	}
	report->verdict = VERDICT_STUCK;
	report->reason = arena_printf(
		b->arena,
		"no iteration ends any more after step %" PRIu64 "%s: below, and until now: "
		"perftracker timeline, with the folder of this report",
		greatest_step(b),
		b->cnt == 1 ? "; where the only rank is"
			    : ", and nothing shows for which rank the others wait; where each is");
	if (report->reason == NULL)
		return -ENOMEM;
	return fill_notes(b, blind, report);
}
