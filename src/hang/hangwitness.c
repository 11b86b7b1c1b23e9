/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks differ from the others, and the facts of each that hangrules.h decides by. */
#include "hang/hang_parts.h"
#include "hang/longcalls.h"

#include <errno.h>
#include <string.h>

/* Others that made so many steps after a process ended do not wait for it. */
#define WENT_ON_STEPS 5

static uint64_t mark_order(enum hang_mark mark)
{
	switch (mark) {
	case HANG_MARK_LOADER:
		return 1;
	case HANG_MARK_BATCH:
		return 2;
	case HANG_MARK_OPTIMIZER:
		return 3;
	case HANG_MARK_NONE:
	case HANG_MARK_BACKWARD:
	case HANG_MARK_STEP:
	default:
		return 0; /* a step ended: the counter has moved */
	}
}

/* Orders workers by progress: the count of steps, then the latest mark within the step. */
uint64_t hangdiagnosis_progress(const struct hang_record *record)
{
	return record->step * 4 + mark_order(record->mark);
}

bool hang_is_stopped(const struct hang_record *record)
{
	return record->process == 'T' || record->process == 't';
}

static bool is_running(const struct hang_record *record)
{
	return record->life == HANG_RUNNING;
}

bool hang_is_gone(const struct hang_record *record)
{
	return record->absent || record->process == 'X' || record->process == 'Z' ||
	       record->life == HANG_GONE;
}

const struct hang_entered *hang_entered_last(const struct blocked *b, size_t i)
{
	return b->desync_known ? desync_entered(&b->desync, &b->records[i]) : NULL;
}

/* By its dump. Of a batch the members stay open there when it is over. */
static bool is_in_transfer(const struct hang_record *record)
{
	for (size_t i = 0; i < record->entered_cnt; i++)
		if (record->entered[i].p2p && record->entered[i].open_name != NULL)
			return true;
	return false;
}

static bool has_not_entered(const struct blocked *b, size_t i)
{
	const struct hang_entered *entered = hang_entered_last(b, i);

	if (b->graphed)
		return b->graph.behind[i];
	if (is_in_transfer(&b->records[i]))
		return false; /* a victim of its peer, as far as is known */
	return entered != NULL && entered->number < b->desync.front->number &&
	       (!b->any_idle || b->meetings.idle[i]);
}

/* That of the flight recorder, else the one read from outside. */
const char *hang_stack(const struct blocked *b, size_t i)
{
	return b->records[i].stack[0] != '\0' ? b->records[i].stack : b->stackfacts[i].stack;
}

const char *hang_innermost(const struct blocked *b, size_t i)
{
	const char *stack = hang_stack(b, i);
	const char *last = strrchr(stack, '\n');

	return last != NULL ? last + 1 : stack;
}

const char *hang_waits_for(const struct blocked *b, size_t i)
{
	/* That of the flight recorder belongs to its stack. */
	if (b->records[i].stack[0] != '\0' || b->records[i].leaf[0] != '\0')
		return b->records[i].leaf;
	return b->stackfacts[i].leaf;
}

static bool is_below(const char *function, const char *folder)
{
	return strncmp(function, folder, strlen(folder)) == 0;
}

/*
 * Whether the innermost functions are torch's own and one of them is in torch/distributed: that of
 * a functional collective, which calls an operator (torch/_ops.py) and waits in it.
 */
static bool ends_in_distributed(const char *stack)
{
	const char *end = stack + strlen(stack);

	while (end > stack) {
		const char *at = memrchr(stack, '\n', (size_t)(end - stack));

		at = at != NULL ? at + 1 : stack;
		if (is_below(at, "torch/distributed/"))
			return true;
		if (!is_below(at, "torch/"))
			return false;
		end = at > stack ? at - 1 : stack;
	}
	return false;
}

/* A worker inside torch/distributed waits for others, whatever the others do. */
static bool is_in_collective(const struct blocked *b, size_t i)
{
	if (b->stackfacts[i].in_collective || is_below(hang_innermost(b, i), "torch/distributed/"))
		return true;
	return *hang_waits_for(b, i) != '\0' && ends_in_distributed(hang_stack(b, i));
}

static bool has_frame(const char *stack, const char *function)
{
	size_t len = strlen(function);

	for (const char *at = stack; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, function, len) == 0 && (at[len] == '\n' || at[len] == '\0'))
			return true;
	}
	return false;
}

/* Some workers that wait in collectives, whose callers show which functions lead there. */
static void find_in_collectives(struct blocked *b)
{
	for (size_t i = 0; i < b->cnt && b->in_collective_cnt < HANG_CALLERS_MAX; i++) {
		if (is_in_collective(b, i) && *hang_waits_for(b, i) != '\0')
			b->in_collectives[b->in_collective_cnt++] = hang_stack(b, i);
	}
}

/*
 * Whether the function in which the worker is blocked called the collective in which another one
 * waits: Work.wait() and the like are no functions of Python and leave their caller innermost.
 */
static bool calls_collective(const struct blocked *b, size_t i)
{
	const char *at = hang_innermost(b, i);

	for (size_t j = 0; j < b->in_collective_cnt && *at != '\0'; j++) {
		if (has_frame(b->in_collectives[j], at))
			return true;
	}
	return false;
}

/*
 * Blocked in the kernel, in a collective, in a wrapper of the model that broadcasts its buffers, or
 * in a backward pass, which waits for its reductions.
 */
static bool waits_for_others(const struct blocked *b, size_t i)
{
	const char *at = hang_innermost(b, i);

	if (b->stackfacts[i].in_collective)
		return true;
	return *hang_waits_for(b, i) != '\0' &&
	       (is_in_collective(b, i) || is_below(at, "torch/autograd/") ||
		is_below(at, "torch/nn/parallel/") || calls_collective(b, i));
}

/* Of stacks alone: a rank that waits for its GPU may wait for others, by what it launched there. */
static bool may_wait_on_gpu(const struct blocked *b, size_t i)
{
	return b->bare && (b->stackfacts[i].facts & HANG_GPU) != 0;
}

static bool is_elsewhere(const struct blocked *b, size_t i)
{
	const char *at = hang_innermost(b, i);

	if (*at == '\0' || is_in_collective(b, i) || b->mismatch || may_wait_on_gpu(b, i))
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
		bool waits = waits_for_others(b, i) || may_wait_on_gpu(b, i);

		waiters += waits;
		others += !waits && *hang_innermost(b, i) != '\0';
	}
	return waiters > 0 && others > 0 && 2 * others <= b->cnt;
}

/* The only function that can be the innermost of more than half (Boyer-Moore majority vote). */
static const char *find_candidate(const struct blocked *b)
{
	const char *candidate = "";
	size_t lead = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		const char *at = hang_innermost(b, i);

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
		bool same = strcmp(hang_innermost(b, i), candidate) == 0;

		cnt += same;
		waiting += same && *hang_waits_for(b, i) != '\0';
	}
	return *candidate != '\0' && waiting > 0 && 2 * cnt > b->cnt ? candidate : NULL;
}

/* Whether a worker is known not to wait for others. */
static bool roams(const struct blocked *b, size_t i)
{
	return is_running(&b->records[i]) ||
	       (*hang_innermost(b, i) != '\0' && !waits_for_others(b, i));
}

/* A job of one process, whose stack is known. */
static bool is_alone(const struct blocked *b, size_t i)
{
	if (b->records[i].world_size == 0 &&
	    (b->stackfacts[i].in_collective || is_in_collective(b, i) || may_wait_on_gpu(b, i)))
		return false;
	return b->cnt == 1 && b->records[i].world_size <= 1 && *hang_innermost(b, i) != '\0';
}

/* --- all in collectives --- */

static bool is_p2p(const char *function)
{
	static const char *const words[] = { "send", "recv", "p2p", "pipelin", NULL };

	for (size_t i = 0; words[i] != NULL; i++)
		if (strstr(function, words[i]) != NULL)
			return true;
	return false;
}

/* The function of the user, or of a wrapper, that calls the collective in which the worker waits. */
const char *hang_meeting(const struct blocked *b, size_t i)
{
	return waits_for_others(b, i) ? hang_innermost(b, i) : "";
}

/* Whether all wait for others, none of them in a send or receive, whose peers are elsewhere. */
static bool all_meet(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++)
		if (*hang_meeting(b, i) == '\0' || is_p2p(hang_stack(b, i)))
			return false;
	return b->cnt > 1;
}

/* Whether more than half meet in one function; the others are in other collectives. */
static bool find_mismatch(struct blocked *b)
{
	const char *candidate = find_candidate(b);
	size_t cnt = 0;

	for (size_t i = 0; i < b->cnt; i++)
		cnt += strcmp(hang_innermost(b, i), candidate) == 0;
	b->meeting = candidate;
	return cnt < b->cnt && 2 * cnt > b->cnt && all_meet(b);
}

static bool is_at_another(const struct blocked *b, size_t i)
{
	return b->mismatch && strcmp(hang_innermost(b, i), b->meeting) != 0;
}

/* --- the verdict on each rank --- */

static bool differs(const struct blocked *b, size_t i)
{
	return b->graphed ? b->graph.other[i] : b->meetings.other[i];
}

/* What its marks, collectives and stack show beside those of the others. */
static uint32_t compare_facts(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];
	uint32_t facts = 0;

	if (b->all_load || (b->behind_known && hangdiagnosis_progress(record) < b->front))
		facts |= HANG_BEHIND;
	if (b->skipped)
		facts |= HANG_SKIPPED | (roams(b, i) ? HANG_ROAMS | HANG_ACCUSED : 0);
	else if (b->meetings.unfinished[i])
		facts |= HANG_UNFINISHED;
	else if (has_not_entered(b, i))
		facts |= HANG_NOT_ENTERED;
	else if (b->graphed && b->graph.unbegun[i])
		facts |= HANG_UNBEGUN;
	else if (is_elsewhere(b, i))
		facts |= HANG_ELSEWHERE;
	else if (is_at_another(b, i) || differs(b, i))
		facts |= HANG_MISMATCH;
	if ((facts & HANG_BEHIND) == 0 && is_alone(b, i))
		facts |= HANG_ALONE;
	if ((facts & (HANG_UNFINISHED | HANG_UNBEGUN | HANG_NOT_ENTERED | HANG_ELSEWHERE |
		      HANG_MISMATCH | HANG_ALONE)) != 0 ||
	    ((facts & HANG_BEHIND) != 0 && !b->skipped))
		facts |= HANG_ACCUSED;
	return facts;
}

static uint32_t facts_of(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];
	uint32_t facts = b->stackfacts[i].facts | compare_facts(b, i);

	if (record->absent) {
		facts |= HANG_ABSENT;
	} else if (hang_is_gone(record)) {
		const bool well = record->exit_known ? record->exit_status == 0 : record->bye;

		facts |= HANG_ENDED | (well ? HANG_ENDED_WELL : 0) |
			 (record->killed_for_memory ? HANG_ENDED_MEMORY : 0);
	} else if (hang_is_stopped(record)) {
		facts |= record->process == 't' ? HANG_TRACED : HANG_STOPPED;
	}
	if (record->process == 'D')
		facts |= HANG_IN_KERNEL;
	if (record->mark == HANG_MARK_LOADER ||
	    (!record->marks_known &&
	     strstr(hang_stack(b, i), "torch/utils/data/dataloader.py") != NULL))
		facts |= HANG_AT_LOADER;
	if (record->launcher_gone)
		facts |= HANG_UNLAUNCHED;
	if (hang_may_pause(b, i))
		facts |= HANG_PAUSES;
	if (b->all_move && record->silent_ns < HANG_PAUSE_NS)
		facts |= HANG_ALL_MOVE;
	return facts | (b->halted ? HANG_HALTED : 0);
}

static int match_rules(struct blocked *b)
{
	uint32_t *facts = arena_calloc(b->arena, b->cnt + 1, sizeof(*facts));
	bool accused = false;

	b->rules = arena_calloc(b->arena, b->cnt + 1, sizeof(*b->rules));
	if (facts == NULL || b->rules == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt; i++) {
		facts[i] = facts_of(b, i);
		b->rules[i] = hangrules_match(facts[i]);
		accused |= b->rules[i] != HANG_NO_RULE;
	}
	for (size_t i = 0; i < b->cnt && !accused; i++)
		b->rules[i] = hangrules_match(facts[i] | HANG_NOBODY);
	return 0;
}

/*
 * Finds the progress that a minority (or one of two) is behind: the greatest, or, if the others
 * differ among themselves, that just after the least. Returns false if there is none.
 */
static bool find_front(const struct hang_record *records, size_t cnt, uint64_t *ret)
{
	size_t alive = 0, behind = 0, last = 0;
	uint64_t front = 0, least = UINT64_MAX;

	for (size_t i = 0; i < cnt; i++) {
		if (hang_is_gone(&records[i]))
			continue; /* accused for that, wherever it was */
		alive++;
		front = MAX(front, hangdiagnosis_progress(&records[i]));
		least = MIN(least, hangdiagnosis_progress(&records[i]));
	}
	for (size_t i = 0; i < cnt; i++) {
		bool counts = !hang_is_gone(&records[i]);

		behind += counts && hangdiagnosis_progress(&records[i]) < front;
		last += counts && hangdiagnosis_progress(&records[i]) == least;
	}
	*ret = front;
	if (behind == 0 || 2 * behind < alive || alive == 2)
		return behind > 0;
	*ret = least + 1;
	return 2 * last < alive;
}

/*
 * Whether all that are behind wait for others, and those at the front do not: they went on without
 * a collective that the others are in. Those behind are their victims then.
 */
static bool is_skipped(const struct blocked *b)
{
	uint64_t front = 0;
	size_t behind = 0;

	for (size_t i = 0; i < b->cnt; i++)
		front = MAX(front, hangdiagnosis_progress(&b->records[i]));
	for (size_t i = 0; i < b->cnt; i++) {
		const struct hang_record *record = &b->records[i];
		bool late = hangdiagnosis_progress(record) < front;

		if (hang_is_gone(record) || hang_is_stopped(record))
			return false;
		if (late ? is_running(record) || !waits_for_others(b, i) : !roams(b, i))
			return false;
		behind += late;
	}
	return behind > 0;
}

static bool all_load(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++) {
		if (b->records[i].mark != HANG_MARK_LOADER)
			return false;
	}
	return b->cnt > 0;
}

/* Whether a process is stopped or gone, and the others made no steps to speak of since. */
static bool is_halted(const struct blocked *b)
{
	uint64_t front = 0;

	for (size_t i = 0; i < b->cnt; i++)
		front = MAX(front, b->records[i].step);
	for (size_t i = 0; i < b->cnt; i++) {
		const struct hang_record *record = &b->records[i];

		if ((hang_is_gone(record) || hang_is_stopped(record)) &&
		    record->step + WENT_ON_STEPS >= front)
			return true;
	}
	return false;
}

/* Whether two samples show each rank in other functions: an evaluation of all, for example. */
static bool all_move(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++)
		if ((b->stackfacts[i].facts & (HANG_MOVES | HANG_LOOP)) == 0)
			return false;
	return b->cnt > 0;
}

/* Whether stacks are all that is known. */
static bool is_bare(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++)
		if (b->records[i].marks_known || b->records[i].entered_cnt > 0 ||
		    strcmp(b->records[i].source, "live") == 0)
			return false;
	return true;
}

static bool accuses(const struct blocked *b)
{
	for (size_t i = 0; i < b->cnt; i++)
		if (b->graph.behind[i] || b->graph.other[i] || b->graph.unbegun[i] ||
		    b->records[i].absent || b->meetings.unfinished[i])
			return true;
	return false;
}

/* Compares the ranks' marks, then collectives, then stacks. Returns 0 or -ENOMEM. */
static int find_differences(struct blocked *b)
{
	int found = 0;

	b->bare = is_bare(b);
	b->behind_known = find_front(b->records, b->cnt, &b->front);
	b->all_load = !b->behind_known && all_load(b);
	b->all_move = all_move(b);
	b->halted = is_halted(b);
	b->skipped = is_skipped(b);
	if (!b->behind_known && !b->skipped && !b->meetings.any_unfinished)
		found = desync_find(b->records, b->cnt, &b->desync);
	b->desync_known = found > 0;
	b->graphed =
		b->graph.known && !b->behind_known && !b->skipped && (b->graph.whole || accuses(b));
	if (b->graphed)
		return MIN(found, 0);
	for (size_t i = 0; found > 0 && i < b->cnt; i++)
		b->any_idle |= b->meetings.idle[i] && has_not_entered(b, i);
	if (b->meetings.any_unfinished || b->meetings.any_other)
		return MIN(found, 0); /* the groups show more than stacks do */
	if (found < 0 || b->behind_known || found > 0)
		return MIN(found, 0);
	b->cluster = find_cluster(b);
	b->waiters_known = b->cluster == NULL && find_waiters(b);
	/* Ranks of several groups are in several collectives: stacks alone don't say which groups. */
	b->mismatch = !b->skipped && !b->bare && find_mismatch(b);
	return 0;
}

int hangwitness_find(struct blocked *b)
{
	int error = 0;

	b->stackfacts = arena_calloc(b->arena, b->cnt + 1, sizeof(*b->stackfacts));
	if (b->stackfacts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt && error == 0; i++)
		error = stackfacts_find(&b->records[i], b->arena, &b->stackfacts[i]);
	if (error == 0)
		error = meetings_find(b->records, b->cnt, b->arena, &b->meetings);
	if (error == 0) {
		find_in_collectives(b);
		error = find_differences(b);
	}
	return error == 0 ? match_rules(b) : error;
}
