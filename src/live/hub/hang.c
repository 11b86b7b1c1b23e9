/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/hang.h"

#include "base/str.h"
#include "format/shared/block.h"
#include "live/hub/desync.h"
#include "live/hub/jobstate.h"
#include "localize/cause.h"
#include "model/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NO_KEY "00000000000000000000000000000000"

/* Why a rank is accused, in order of precedence. */
enum reason {
	REASON_GONE,
	REASON_STOPPED,
	REASON_KERNEL, /* uninterruptible: disk, network file system, driver */
	REASON_LOADER,
	REASON_BEHIND,
	/* No rank is behind by its marks, but this one: */
	REASON_NOT_ENTERED, /* has not entered a collective of its group */
	REASON_ELSEWHERE,   /* is in another function than the cluster */
	REASON_CNT
};

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
};

static uint64_t mark_order(uint32_t mark)
{
	switch (mark) {
	case MARK_DATALOADER:
		return 1;
	case MARK_DATALOADER_END:
		return 2;
	case MARK_OPTIMIZER_BEGIN:
		return 3;
	default:
		return 0; /* a step ended: the counter has moved */
	}
}

/* Orders workers by progress: the count of steps, then the latest mark within the step. */
static uint64_t progress(const struct wire_state *state)
{
	return state->step * 4 + mark_order(state->last_mark);
}

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

static bool is_stopped(const struct wire_state *state)
{
	return state->process == 'T' || state->process == 't';
}

static bool is_gone(const struct wire_state *state)
{
	return state->process == 'X' || state->process == 'Z' || state->phase == PHASE_GONE;
}

struct blocked {
	const struct wire_state *states;
	const struct wire_where **wheres; /* by state; NULL: unknown */
	size_t cnt;
	int64_t now_ns;
	uint64_t front; /* progress of the majority */
	bool behind_known;
	bool all_load;	      /* no worker is behind: all of them wait for their loaders */
	struct desync desync; /* used if no rank is behind by its marks */
	bool desync_known;
	/* used if collectives show no rank, either: the majority's function; NULL: none */
	const char *cluster;
	/* used without a cluster, too: some wait for others, and the rest, at most half, does not */
	bool waiters_known;
	struct arena *arena;
};

/* The worker's latest collective of the desynchronized group; NULL: unknown. */
static const struct wire_entered *entered_last(const struct blocked *b, size_t i)
{
	return b->desync_known ? desync_entered(&b->desync, b->wheres[i]) : NULL;
}

static bool has_not_entered(const struct blocked *b, size_t i)
{
	const struct wire_entered *entered = entered_last(b, i);

	return entered != NULL && entered->number < b->desync.front->number;
}

/* The innermost function of a worker; "": unknown. */
static const char *innermost(const struct blocked *b, size_t i)
{
	const char *stack = b->wheres[i] != NULL ? b->wheres[i]->stack : "";
	const char *last = strrchr(stack, '\n');

	return last != NULL ? last + 1 : stack;
}

/* The system call, or the GIL, that the innermost function waits for; "": none was seen. */
static const char *waits_for(const struct blocked *b, size_t i)
{
	return b->wheres[i] != NULL ? b->wheres[i]->leaf : "";
}

static bool is_below(const char *function, const char *folder)
{
	return strncmp(function, folder, strlen(folder)) == 0;
}

/* A worker inside torch/distributed waits for others, whatever the others do. */
static bool is_in_collective(const struct blocked *b, size_t i)
{
	return is_below(innermost(b, i), "torch/distributed/");
}

/* Blocked in the kernel, in a collective or in a backward pass, which waits for its reductions. */
static bool waits_for_others(const struct blocked *b, size_t i)
{
	return *waits_for(b, i) != '\0' &&
	       (is_in_collective(b, i) || is_below(innermost(b, i), "torch/autograd/"));
}

static bool is_elsewhere(const struct blocked *b, size_t i)
{
	const char *at = innermost(b, i);

	if (*at == '\0' || is_in_collective(b, i))
		return false;
	if (b->cluster != NULL)
		return strcmp(at, b->cluster) != 0;
	return b->waiters_known && !waits_for_others(b, i);
}

/* Whether some workers wait for others, and at most half of all is known not to. */
static bool find_waiters(const struct blocked *b)
{
	size_t waiters = 0, others = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		bool waits = waits_for_others(b, i);

		waiters += waits;
		others += !waits && *innermost(b, i) != '\0';
	}
	return waiters > 0 && others > 0 && 2 * others <= b->cnt;
}

/* The only function that can be the innermost of more than half (Boyer-Moore majority vote). */
static const char *find_candidate(const struct blocked *b)
{
	const char *candidate = "";
	size_t lead = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		const char *at = innermost(b, i);

		if (lead == 0)
			candidate = at;
		lead = strcmp(at, candidate) == 0 ? lead + 1 : lead - 1;
	}
	return candidate;
}

/*
 * Returns the innermost function of more than half of the workers, if any of them waits; else NULL.
 * O(cnt).
 */
static const char *find_cluster(const struct blocked *b)
{
	const char *candidate = find_candidate(b);
	size_t cnt = 0, waiting = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		bool same = strcmp(innermost(b, i), candidate) == 0;

		cnt += same;
		waiting += same && *waits_for(b, i) != '\0';
	}
	return *candidate != '\0' && waiting > 0 && 2 * cnt > b->cnt ? candidate : NULL;
}

/* Why this worker is accused; REASON_CNT: it is not. */
static enum reason judge(const struct blocked *b, size_t i)
{
	const struct wire_state *state = &b->states[i];
	bool behind = b->all_load || (b->behind_known && progress(state) < b->front);

	if (is_gone(state))
		return REASON_GONE;
	if (is_stopped(state))
		return REASON_STOPPED;
	if (!behind && !has_not_entered(b, i) && !is_elsewhere(b, i))
		return REASON_CNT;
	if (state->process == 'D')
		return REASON_KERNEL;
	if (!behind)
		return has_not_entered(b, i) ? REASON_NOT_ENTERED : REASON_ELSEWHERE;
	return state->last_mark == MARK_DATALOADER ? REASON_LOADER : REASON_BEHIND;
}

/*
 * Finds the progress that a minority (or one of two) is behind: the greatest, or, if the others
 * differ among themselves, that just after the least. Returns false if there is none.
 */
static bool find_front(const struct wire_state *states, size_t cnt, uint64_t *ret)
{
	size_t behind = 0, last = 0;
	uint64_t front = 0, least = UINT64_MAX;

	for (size_t i = 0; i < cnt; i++) {
		front = MAX(front, progress(&states[i]));
		least = MIN(least, progress(&states[i]));
	}
	for (size_t i = 0; i < cnt; i++) {
		behind += progress(&states[i]) < front;
		last += progress(&states[i]) == least;
	}
	*ret = front;
	if (behind == 0 || 2 * behind < cnt || cnt == 2)
		return behind > 0;
	*ret = least + 1;
	return 2 * last < cnt;
}

static bool all_load(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++) {
		if (b->states[i].last_mark != MARK_DATALOADER)
			return false;
	}
	return b->cnt > 0;
}

bool hang_job_is_ending(const struct wire_state *states, size_t cnt)
{
	uint64_t front = 0;

	for (size_t i = 0; i < cnt; i++)
		front = MAX(front, progress(&states[i]));
	for (size_t i = 0; i < cnt; i++) {
		if (states[i].bye && progress(&states[i]) == front)
			return true;
	}
	return false;
}

static void append_stack(struct str *line, const struct blocked *b, size_t i)
{
	const struct wire_entered *entered = entered_last(b, i);
	const char *at = innermost(b, i), *leaf = waits_for(b, i);

	if (*at != '\0' || *leaf != '\0')
		str_printf(line, ", in %s%s%s", at, *at != '\0' && *leaf != '\0' ? " " : "", leaf);
	if (b->wheres[i] != NULL && b->wheres[i]->children[0] != '\0')
		str_printf(line, "; its loader's worker processes are in %s",
			   b->wheres[i]->children);
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
	if (is_gone(state))
		str_append(&line, state->bye ? ", ended its program" : ", ended without notice");
	else if (is_stopped(state))
		str_append(&line, ", stopped (state T)");
	else if (state->process == 'D')
		str_append(&line, ", waits in the kernel (state D)");
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

/* Names the finding by the innermost function, if it is the same in all workers accused. */
static int name_function(const struct blocked *b, enum reason reason, size_t first,
			 struct finding *ret)
{
	const struct wire_where *where = b->wheres[first];
	int error;

	if (reason == REASON_GONE || reason == REASON_STOPPED || where == NULL ||
	    where->stack[0] == '\0')
		return 0;
	for (size_t i = first + 1; i < b->cnt; i++) {
		if (judge(b, i) == reason && strcmp(innermost(b, i), innermost(b, first)) != 0)
			return 0;
	}
	error = split_stack(b->arena, where->stack, ret);
	if (error == 0) {
		ret->name = ret->stack[ret->stack_cnt - 1];
		ret->class = CLASS_HOST;
	}
	if (error == 0 && reason == REASON_LOADER && where->children[0] != '\0')
		error = name_children(b, where->children, ret);
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
		enum reason own = judge(b, i);

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
		if (judge(b, i) != REASON_CNT)
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

static int fill_blocked(const struct blocked *b, bool blind, struct report *report)
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
		report->reason =
			b->all_load
				? "no iteration ends any more: no loader returns a batch"
				: "no iteration ends any more, and some ranks differ from the others";
		return fill_notes(b, blind, report);
	}
	report->verdict = VERDICT_STUCK;
	report->reason = arena_printf(
		b->arena,
		"no iteration ends any more after step %" PRIu64 ", and nothing shows for which "
		"rank the others wait; where each is: below, and until now: perftracker timeline, "
		"with the folder of this report",
		greatest_step(b));
	if (report->reason == NULL)
		return -ENOMEM;
	return fill_notes(b, blind, report);
}

static int by_worker(const void *a, const void *b)
{
	const struct wire_where *x = *(const struct wire_where *const *)a;
	const struct wire_where *y = *(const struct wire_where *const *)b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* The worker's stack of its current step; a stack of an earlier step is ignored. NULL: unknown. */
static const struct wire_where *find_where(const struct wire_where **sorted, size_t cnt,
					   const struct wire_state *state)
{
	const struct wire_where like = { .worker = state->worker, .step = state->step };
	const struct wire_where *key = &like, **found;

	found = bsearch(&key, sorted, cnt, sizeof(*sorted), by_worker);
	return found != NULL ? *found : NULL;
}

/* Collects the workers whose hook is on: a disabled hook is no evidence. Returns 0 or -ENOMEM. */
static int keep_watched(const struct hang_facts *facts, struct blocked *b)
{
	struct wire_state *kept = arena_calloc(b->arena, facts->cnt + 1, sizeof(*kept));
	const struct wire_where **sorted =
		arena_calloc(b->arena, facts->where_cnt + 1, sizeof(*sorted));

	b->wheres = arena_calloc(b->arena, facts->cnt + 1, sizeof(*b->wheres));
	if (kept == NULL || sorted == NULL || b->wheres == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < facts->where_cnt; i++)
		sorted[i] = &facts->wheres[i];
	qsort(sorted, facts->where_cnt, sizeof(*sorted), by_worker);
	b->states = kept;
	for (size_t i = 0; i < facts->cnt; i++) {
		if (facts->states[i].phase == PHASE_SILENT)
			continue;
		b->wheres[b->cnt] = find_where(sorted, facts->where_cnt, &facts->states[i]);
		kept[b->cnt++] = facts->states[i];
	}
	return 0;
}

/* Compares the ranks' marks, then collectives, then stacks. Returns 0 or -ENOMEM. */
static int find_differences(struct blocked *b)
{
	int found = 0;

	b->behind_known = find_front(b->states, b->cnt, &b->front);
	b->all_load = !b->behind_known && all_load(b);
	if (!b->behind_known)
		found = desync_find(b->wheres, b->cnt, &b->desync);
	b->desync_known = found > 0;
	if (!b->behind_known && found == 0)
		b->cluster = find_cluster(b);
	b->waiters_known = !b->behind_known && found == 0 && b->cluster == NULL && find_waiters(b);
	return MIN(found, 0);
}

int hang_report(const struct hang_facts *facts, struct report *ret)
{
	struct report report = { 0 };
	struct blocked b = { .now_ns = facts->now_ns, .arena = &report.arena };
	int r;

	arena_init(&report.arena);
	r = keep_watched(facts, &b);
	if (r == 0)
		r = find_differences(&b);
	if (r == 0)
		r = fill_blocked(&b, facts->blind, &report);
	if (r < 0) {
		arena_done(&report.arena);
		return r;
	}
	*ret = report;
	return 0;
}
