/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "base/text/pythoncode.h"
#include "hang/hang_parts.h"
#include "model/place/place.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NO_KEY "00000000000000000000000000000000"

static const char *place(const struct hang_record *record)
{
	switch (record->mark) {
	case HANG_MARK_LOADER:
		return "inside dataloader.next";
	case HANG_MARK_BATCH:
		return "after dataloader.next";
	case HANG_MARK_OPTIMIZER:
		return "inside optimizer.step";
	case HANG_MARK_STEP:
		return "after optimizer.step";
	case HANG_MARK_BACKWARD:
		return "after a backward pass";
	case HANG_MARK_NONE:
	default:
		return "after an iteration mark";
	}
}

static void append_awaited(struct str *line, const struct hang_record *record,
			   const struct stackfacts *facts)
{
	static const char *const whose[AWAITED_BY_CNT] = {
		[AWAITED_LOADER] = "its loader's worker processes",
		[AWAITED_THREAD] = "its other threads",
		[AWAITED_CHILD] = "its child processes",
	};

	if (record->ended[0] != '\0')
		str_printf(line, "; a thread of it ended %.1f s ago, last seen in %s",
			   (double)record->ended_ago_ns / NSEC_PER_SEC, record->ended);
	if (record->awaited[0] != '\0')
		str_printf(line, "; %s are in %s", whose[record->by], record->awaited);
	else if (facts->child[0] != '\0')
		str_printf(line, "; a worker process of its loader is in %s", facts->child);
	if (facts->says[0] != '\0')
		str_printf(line, "; %s", facts->says);
}

static void append_entered(struct str *line, const struct hang_entered *entered)
{
	str_printf(line, "; of group %s it entered %s%snumber %" PRId64 " last", entered->group,
		   entered->name, entered->name[0] != '\0' ? " " : "", entered->number);
	if (entered->elements > 0)
		str_printf(line, ", %" PRIu64 " elements", entered->elements);
	if (entered->caller[0] != '\0')
		str_printf(line, ", called by %s", entered->caller);
}

/* An open collective of a rank without a stack: where it waits. */
static const struct hang_entered *open_entry(const struct hang_record *record)
{
	for (size_t i = 0; i < record->entered_cnt; i++)
		if (!record->entered[i].ended)
			return &record->entered[i];
	return NULL;
}

/* What its dump says of its collectives. */
static void append_meeting(struct str *line, const struct blocked *b, size_t i)
{
	const struct hang_entered *shown = b->meetings.shown[i];
	const struct hang_entered *open = open_entry(&b->records[i]);

	if (shown != NULL)
		str_printf(line,
			   "; of group %s it has entered %s number %" PRId64
			   " and finished number %" PRId64 ", its peers number %" PRId64,
			   shown->group, shown->name, shown->number, shown->last_finished,
			   shown->last_finished + b->meetings.shown_lag[i]);
	else if (b->meetings.idle[i])
		str_append(line, ", in no collective");
	else if (open != NULL && *hang_innermost(b, i) == '\0')
		str_printf(line, ", in %s number %" PRId64 " of group %s", open->name, open->number,
			   open->group);
}

static void append_stack(struct str *line, const struct blocked *b, size_t i)
{
	const struct hang_entered *entered = hang_entered_last(b, i);
	const char *at = hang_innermost(b, i), *leaf = hang_waits_for(b, i);

	if (*at != '\0' || *leaf != '\0')
		str_printf(line, ", in %s%s%s", at, *at != '\0' && *leaf != '\0' ? " " : "", leaf);
	append_awaited(line, &b->records[i], &b->stackfacts[i]);
	append_meeting(line, b, i);
	if (entered != NULL)
		append_entered(line, entered);
}

static void append_exit(struct str *line, const struct hang_record *record)
{
	if (!record->exit_known)
		str_append(line, record->bye ? ", ended its program" : ", ended without notice");
	else if (WIFSIGNALED(record->exit_status))
		str_printf(line, ", ended by signal %d", WTERMSIG(record->exit_status));
	else
		str_printf(line, ", ended with exit status %d", WEXITSTATUS(record->exit_status));
	if (record->killed_for_memory)
		str_append(line, ": memory ran out");
}

static void append_state(struct str *line, const struct blocked *b,
			 const struct hang_record *record)
{
	if (record->absent)
		str_append(line, ", left no dump");
	else if (hang_is_gone(record))
		append_exit(line, record);
	else if (record->process == 't')
		str_append(line, ", stopped by a tracer (state t)");
	else if (hang_is_stopped(record))
		str_append(line, ", stopped (state T)");
	else if (record->process == 'D')
		str_append(line, ", waits in the kernel (state D)");
	else if (b->skipped && record->life == HANG_RUNNING)
		str_append(line, ", its iterations go on");
}

static const char *evidence_line(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];
	struct str line = { 0 };
	const char *copy;

	str_printf(&line, "rank %d", record->rank);
	if (record->pid != 0)
		str_printf(&line, " (pid %u)", record->pid);
	if (record->marks_known)
		str_printf(&line, ": %s of step %" PRIu64 " since %.1f s", place(record),
			   record->step, (double)record->silent_ns / NSEC_PER_SEC);
	append_state(&line, b, record);
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

	while (i < b->cnt && b->rules[i] != HANG_NO_RULE)
		i++;
	if (i == b->cnt || *hang_innermost(b, i) == '\0')
		return 0;
	error = split_stack(b->arena, hang_stack(b, i), ret);
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

/* Where a worker of the loader is, by the flight recorder, else by its stack. */
static const char *child_place(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];

	if (record->awaited[0] != '\0' && record->by == AWAITED_LOADER)
		return record->awaited;
	return b->stackfacts[i].child;
}

/* Names the finding by the user's innermost function, if the innermost one is the same in all workers accused. */
static int name_function(const struct blocked *b, size_t rule, size_t first, struct finding *ret)
{
	const struct hang_record *record = &b->records[first];
	int error;

	if (b->skipped && hangrules[rule].needs == (HANG_SKIPPED | HANG_ROAMS) &&
	    record->life == HANG_RUNNING)
		return name_skipped(b, ret);
	if (hangrules[rule].by_state || *hang_stack(b, first) == '\0')
		return 0;
	for (size_t i = first + 1; i < b->cnt; i++) {
		if (b->rules[i] == rule &&
		    strcmp(hang_innermost(b, i), hang_innermost(b, first)) != 0)
			return 0;
	}
	error = split_stack(b->arena, hang_stack(b, first), ret);
	if (error == 0) {
		cut_to_users(ret);
		ret->name = ret->stack[ret->stack_cnt - 1];
		ret->class = CLASS_HOST;
	}
	if (error == 0 && (hangrules[rule].needs & HANG_AT_LOADER) != 0 &&
	    *child_place(b, first) != '\0')
		error = name_children(b, child_place(b, first), ret);
	return error;
}

static int init_finding(const struct blocked *b, const struct hang_rule *rule, struct finding *ret)
{
	int *ranks = arena_calloc(b->arena, b->cnt, sizeof(*ranks));
	int *victims = arena_calloc(b->arena, b->cnt, sizeof(*victims));
	const char **evidence = arena_calloc(b->arena, b->cnt + 1, sizeof(*evidence));
	const char *title = arena_printf(b->arena, "The job hangs: %s", rule->title);

	if (ranks == NULL || victims == NULL || evidence == NULL || title == NULL)
		return -ENOMEM;
	*ret = (struct finding){ .id = rule->id,
				 .cause = rule->cause,
				 .title = title,
				 .key = NO_KEY,
				 .name = rule->place,
				 .class = CLASS_IDLE,
				 .ranks = ranks,
				 .victims = victims,
				 .evidence = evidence,
				 .confidence = rule->confidence,
				 .advice = rule->advice,
				 .gain_pct = 100 };
	return 0;
}

static int add_evidence(const struct blocked *b, size_t i, struct finding *ret)
{
	const char **evidence = (const char **)(uintptr_t)ret->evidence;

	evidence[ret->evidence_cnt] = evidence_line(b, i);
	return evidence[ret->evidence_cnt++] != NULL ? 0 : -ENOMEM;
}

static int fill_finding(const struct blocked *b, size_t rule, struct finding *ret)
{
	int error = init_finding(b, &hangrules[rule], ret), *ranks, *victims;
	size_t victim = SIZE_MAX;
	int64_t since_ns = 0;

	if (error < 0)
		return error;
	ranks = (int *)(uintptr_t)ret->ranks;
	victims = (int *)(uintptr_t)ret->victims;
	for (size_t i = 0; i < b->cnt && error == 0; i++) {
		const struct hang_record *record = &b->records[i];

		if (b->rules[i] == rule || b->rules[i] == HANG_NO_RULE)
			since_ns = MAX(since_ns, record->silent_ns);
		if (b->rules[i] == HANG_NO_RULE) {
			victims[ret->victim_cnt++] = record->rank;
			if (victim == SIZE_MAX || (hang_entered_last(b, victim) == NULL &&
						   hang_entered_last(b, i) != NULL))
				victim = i;
		}
		if (b->rules[i] != rule)
			continue;
		if (ret->rank_cnt == 0)
			error = name_function(b, rule, i, ret);
		ranks[ret->rank_cnt++] = record->rank;
		if (error == 0)
			error = add_evidence(b, i, ret);
	}
	/* One victim's line is evidence of where the others wait. */
	if (error == 0 && victim != SIZE_MAX)
		error = add_evidence(b, victim, ret);
	qsort(ranks, ret->rank_cnt, sizeof(*ranks), by_int);
	qsort(victims, ret->victim_cnt, sizeof(*victims), by_int);
	ret->all_workers = ret->rank_cnt == b->cnt;
	ret->time_ms_per_iteration = since_ns > 0 ? (double)since_ns / NSEC_PER_MSEC : (double)NAN;
	ret->delta_ms_per_iteration = ret->gain_ms_per_iteration = ret->time_ms_per_iteration;
	return error;
}

static bool is_used(const struct blocked *b, size_t rule)
{
	for (size_t i = 0; i < b->cnt; i++)
		if (b->rules[i] == rule)
			return true;
	return false;
}

static int fill_findings(const struct blocked *b, struct report *report)
{
	struct finding *findings = arena_calloc(b->arena, hangrules_cnt, sizeof(*findings));

	if (findings == NULL)
		return -ENOMEM;
	report->findings = findings;
	for (size_t rule = 0; rule < hangrules_cnt; rule++) {
		int error;

		if (hangrules[rule].pause || !is_used(b, rule))
			continue;
		error = fill_finding(b, rule, &findings[report->finding_cnt]);
		if (error < 0)
			return error;
		report->finding_cnt++;
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
		step = MAX(step, b->records[i].step);
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

/* Whose latest collective of a group has a lower number than that of another rank. */
static void append_lowest(struct str *out, const struct blocked *b)
{
	const struct hang_entered *lowest = NULL;
	int rank = -1;

	for (size_t i = 0; i < b->cnt; i++) {
		for (size_t j = 0; j < b->records[i].entered_cnt; j++) {
			const struct hang_entered *entered = &b->records[i].entered[j];

			if (entered->p2p || entered->ended ||
			    (lowest != NULL && entered->number >= lowest->number))
				continue;
			lowest = entered;
			rank = b->records[i].rank;
		}
	}
	if (lowest != NULL)
		str_printf(out,
			   "; the lowest open collective is %s number %" PRId64
			   " of group %s, on rank %d",
			   lowest->name, lowest->number, lowest->group, rank);
}

/* The rank that is furthest back by its marks, if one is. */
static void append_furthest(struct str *out, const struct blocked *b)
{
	size_t least = 0, cnt = 0;

	for (size_t i = 1; i < b->cnt; i++)
		if (hangdiagnosis_progress(&b->records[i]) <
		    hangdiagnosis_progress(&b->records[least]))
			least = i;
	for (size_t i = 0; i < b->cnt; i++)
		cnt += hangdiagnosis_progress(&b->records[i]) ==
		       hangdiagnosis_progress(&b->records[least]);
	if (b->cnt > 1 && cnt < b->cnt && b->records[least].marks_known)
		str_printf(out, "; rank %d%s furthest back, at step %" PRIu64,
			   b->records[least].rank, cnt > 1 ? " and others are" : " is",
			   b->records[least].step);
}

static int say_stuck(const struct blocked *b, struct report *report)
{
	struct str text = { 0 };

	str_append(&text, "no iteration ends any more");
	if (greatest_step(b) > 0)
		str_printf(&text, " after step %" PRIu64, greatest_step(b));
	str_append(&text, ": below, and until now: perftracker timeline, with the folder of this "
			  "report");
	if (b->cnt == 1) {
		str_append(&text, "; where the only rank is");
	} else {
		append_furthest(&text, b);
		append_lowest(&text, b);
		str_append(&text,
			   ", and nothing shows for which rank the others wait; where each is");
	}
	report->reason = str_error(&text) == 0 ? arena_strdup(b->arena, str_borrow(&text)) : NULL;
	str_done(&text);
	return report->reason != NULL ? 0 : -ENOMEM;
}

int hang_fill_report(const struct blocked *b, bool blind, struct report *report)
{
	size_t first = 0;
	int ret = fill_findings(b, report);

	report->workers_analyzed = (int)b->cnt;
	report->trigger = (struct report_trigger){
		.present = true,
		.kind = "blocked",
		.baseline_iteration_ms = (double)NAN,
		.current_iteration_ms = (double)NAN,
		.step = b->cnt > 0 && b->records[0].marks_known ? (int64_t)b->front / 4 : -1,
	};
	if (ret < 0)
		return ret;
	if (hang_is_pause(b, &first)) {
		ret = hang_say_pause(b, first, report);
		return ret < 0 ? ret : fill_notes(b, blind, report);
	}
	if (report->finding_cnt > 0) {
		report->verdict = VERDICT_ABNORMAL;
		report->reason = reason_of(b);
		return fill_notes(b, blind, report);
	}
	report->verdict = VERDICT_STUCK;
	ret = say_stuck(b, report);
	return ret < 0 ? ret : fill_notes(b, blind, report);
}

/* Copies the records, and adds those of ranks without a dump that others wait for. */
static int take_records(struct blocked *b, const struct hang_facts *facts)
{
	struct hang_record *records = arena_calloc(b->arena, facts->cnt + 1, sizeof(*records)),
			   *all;
	int error = records != NULL ? 0 : -ENOMEM;

	if (error == 0 && facts->cnt > 0)
		memcpy(records, facts->records, facts->cnt * sizeof(*records));
	if (error == 0)
		error = meetings_number(records, facts->cnt, b->arena);
	if (error == 0)
		error = waitgraph_find(records, facts->cnt, b->arena, &b->graph);
	if (error < 0)
		return error;
	all = arena_calloc(b->arena, facts->cnt + b->graph.absent_cnt + 1, sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	memcpy(all, records, facts->cnt * sizeof(*all));
	for (size_t i = 0; i < b->graph.absent_cnt; i++)
		all[facts->cnt + i] = (struct hang_record){ .rank = b->graph.absent[i],
							    .absent = true,
							    .host = "",
							    .source = "",
							    .stack = "",
							    .leaf = "",
							    .awaited = "",
							    .ended = "",
							    .says = "",
							    .child = "" };
	b->records = all;
	b->cnt = facts->cnt + b->graph.absent_cnt;
	return 0;
}

static int add_stacks(const struct blocked *b, struct report *report)
{
	const struct stacks_process **stacks = arena_calloc(b->arena, b->cnt + 1, sizeof(*stacks));

	if (stacks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt; i++)
		if (b->records[i].stacks != NULL)
			stacks[report->stack_cnt++] = b->records[i].stacks;
	report->stacks = stacks;
	return 0;
}

int hangdiagnosis_make(const struct hang_facts *facts, struct report *report)
{
	struct blocked b = { .arena = &report->arena };
	int error = take_records(&b, facts);

	if (error == 0)
		error = hangwitness_find(&b);
	if (error == 0)
		error = add_stacks(&b, report);
	return error < 0 ? error : hang_fill_report(&b, facts->blind, report);
}
