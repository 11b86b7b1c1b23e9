/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hang/hang.h"

#include "format/shared/block.h"
#include "live/hang/hang_parts.h"

#include <errno.h>
#include <string.h>

/* Others that made so many steps after a process ended do not wait for it. */
#define WENT_ON_STEPS 5

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

bool hang_is_stopped(const struct wire_state *state)
{
	return state->process == 'T' || state->process == 't';
}

bool hang_is_running(const struct wire_state *state)
{
	return state->phase != PHASE_BLOCKED && state->phase != PHASE_GONE &&
	       state->phase != PHASE_SILENT;
}

bool hang_is_gone(const struct wire_state *state)
{
	return state->process == 'X' || state->process == 'Z' || state->phase == PHASE_GONE;
}

const struct wire_entered *hang_entered_last(const struct blocked *b, size_t i)
{
	return b->desync_known ? desync_entered(&b->desync, b->wheres[i]) : NULL;
}

static bool has_not_entered(const struct blocked *b, size_t i)
{
	const struct wire_entered *entered = hang_entered_last(b, i);

	return entered != NULL && entered->number < b->desync.front->number;
}

const char *hang_innermost(const struct blocked *b, size_t i)
{
	const char *stack = b->wheres[i] != NULL ? b->wheres[i]->stack : "";
	const char *last = strrchr(stack, '\n');

	return last != NULL ? last + 1 : stack;
}

const char *hang_waits_for(const struct blocked *b, size_t i)
{
	return b->wheres[i] != NULL ? b->wheres[i]->leaf : "";
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
	if (is_below(hang_innermost(b, i), "torch/distributed/"))
		return true;
	return *hang_waits_for(b, i) != '\0' && ends_in_distributed(b->wheres[i]->stack);
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
			b->in_collectives[b->in_collective_cnt++] = b->wheres[i]->stack;
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

	return *hang_waits_for(b, i) != '\0' &&
	       (is_in_collective(b, i) || is_below(at, "torch/autograd/") ||
		is_below(at, "torch/nn/parallel/") || calls_collective(b, i));
}

static bool is_elsewhere(const struct blocked *b, size_t i)
{
	const char *at = hang_innermost(b, i);

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
	return hang_is_running(&b->states[i]) ||
	       (*hang_innermost(b, i) != '\0' && !waits_for_others(b, i));
}

/* A job of one process, whose stack is known. */
static bool is_alone(const struct blocked *b, size_t i)
{
	return b->cnt == 1 && b->states[i].world_size <= 1 && *hang_innermost(b, i) != '\0';
}

enum reason hang_judge(const struct blocked *b, size_t i)
{
	const struct wire_state *state = &b->states[i];
	bool behind = b->all_load || (b->behind_known && progress(state) < b->front);

	if (hang_is_gone(state))
		return REASON_GONE;
	if (hang_is_stopped(state))
		return REASON_STOPPED;
	if (b->halted)
		return REASON_CNT; /* it waits for that one, or for who does */
	if (b->skipped && !roams(b, i))
		return REASON_CNT;
	if (b->skipped && state->process != 'D')
		return state->last_mark == MARK_DATALOADER ? REASON_LOADER : REASON_NOT_ENTERED;
	if (!behind && is_alone(b, i))
		return state->process == 'D' ? REASON_KERNEL : REASON_ALONE;
	if (!b->skipped && !behind && !has_not_entered(b, i) && !is_elsewhere(b, i))
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
	size_t alive = 0, behind = 0, last = 0;
	uint64_t front = 0, least = UINT64_MAX;

	for (size_t i = 0; i < cnt; i++) {
		if (hang_is_gone(&states[i]))
			continue; /* accused for that, wherever it was */
		alive++;
		front = MAX(front, progress(&states[i]));
		least = MIN(least, progress(&states[i]));
	}
	for (size_t i = 0; i < cnt; i++) {
		bool counts = !hang_is_gone(&states[i]);

		behind += counts && progress(&states[i]) < front;
		last += counts && progress(&states[i]) == least;
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
		front = MAX(front, progress(&b->states[i]));
	for (size_t i = 0; i < b->cnt; i++) {
		const struct wire_state *state = &b->states[i];
		bool late = progress(state) < front;

		if (hang_is_gone(state) || hang_is_stopped(state))
			return false;
		if (late ? hang_is_running(state) || !waits_for_others(b, i) : !roams(b, i))
			return false;
		behind += late;
	}
	return behind > 0;
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

/* Whether a process is stopped or gone, and the others made no steps to speak of since. */
static bool is_halted(const struct blocked *b)
{
	uint64_t front = 0;

	for (size_t i = 0; i < b->cnt; i++)
		front = MAX(front, b->states[i].step);
	for (size_t i = 0; i < b->cnt; i++) {
		const struct wire_state *state = &b->states[i];

		if ((hang_is_gone(state) || hang_is_stopped(state)) &&
		    state->step + WENT_ON_STEPS >= front)
			return true;
	}
	return false;
}

/* Compares the ranks' marks, then collectives, then stacks. Returns 0 or -ENOMEM. */
static int find_differences(struct blocked *b)
{
	int found = 0;

	b->behind_known = find_front(b->states, b->cnt, &b->front);
	b->all_load = !b->behind_known && all_load(b);
	b->halted = is_halted(b);
	b->skipped = is_skipped(b);
	if (!b->behind_known && !b->skipped)
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
		find_in_collectives(&b);
	if (r == 0)
		r = find_differences(&b);
	if (r == 0)
		r = hang_fill_report(&b, facts->blind, &report);
	if (r < 0) {
		arena_done(&report.arena);
		return r;
	}
	*ret = report;
	return 0;
}
