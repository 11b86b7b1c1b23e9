/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/part.h"

#include "localize/witness/by_past.h"
#include "localize/witness/excess.h"
#include "model/thresholds.h"

#include <string.h>

static bool all_are_usual(const accusations *list)
{
	vec_foreach(a, list) {
		if (!a->usual)
			return false;
	}
	return true;
}

static bool is_part(const struct job *job, const struct accusation *a)
{
	return a->part_of_ns > 0 && !a->recalled && !job->frames.data[a->frame].trains;
}

/* A function's own time has that of the built-ins it calls; data loading, all that is below it. */
static bool is_counted_by_caller(const struct job *job, const struct accusation *a,
				 const accusations *list)
{
	uint32_t caller = excess_caller(job->frames.data, a->frame);

	vec_foreach(other, list) {
		if (caller != FRAME_NONE && other->frame == caller)
			return true;
		if (other != a && is_part(job, other) &&
		    job->frames.data[other->frame].kind == KIND_ANNOTATION &&
		    job_frame_below(job, a->frame, other->frame))
			return true;
	}
	return false;
}

static bool same_workers(const struct accusation *a, const struct accusation *b)
{
	return a->worker_cnt == b->worker_cnt &&
	       memcmp(a->workers, b->workers, a->worker_cnt * sizeof(*a->workers)) == 0;
}

/* What the place costs together with the long functions that it calls. */
struct subtree {
	struct accusation *top, *largest; /* accusations of the list */
	double ns;
};

/*
 * Only where one function has most of it: of much code each line becomes a little slower when it
 * is the machine that is slow.
 */
static struct subtree find_subtree(const struct job *job, struct accusation *top, accusations *list)
{
	struct subtree ret = { .top = top, .largest = top, .ns = top->gain_ns };

	vec_foreach(a, list) {
		if (a == top || !is_part(job, a) || a->strikes != NULL || top->strikes != NULL ||
		    !same_workers(a, top) || !job_frame_below(job, a->frame, top->frame) ||
		    is_counted_by_caller(job, a, list))
			continue;
		ret.ns += a->gain_ns;
		if (a->gain_ns > ret.largest->gain_ns)
			ret.largest = a;
	}
	if (ret.largest->gain_ns < PART_MAIN * ret.ns)
		return (struct subtree){ .top = top, .largest = top, .ns = top->gain_ns };
	return ret;
}

static struct subtree find_largest(const struct job *job, accusations *list)
{
	struct subtree ret = { 0 };

	vec_foreach(a, list) {
		struct subtree s = { 0 };

		if (is_part(job, a))
			s = find_subtree(job, a, list);
		if (s.ns > ret.ns)
			ret = s;
	}
	return ret;
}

static void take_largest(const struct job *job, accusations *list)
{
	struct subtree s = find_largest(job, list);
	struct accusation *a = s.top;

	if (a == NULL || s.ns < PART_LEAST * a->part_of_ns)
		return;
	if (s.ns >= EXCESS_SLOWDOWN * a->part_of_ns)
		a->part_of_ns = 0;
	a->usual = false;
	a->function = s.largest->function;
	a->class = s.largest->class;
	a->own_ns = a->gain_ns = s.ns;
}

int part_find(const struct past *past, const struct accuse_options *options, struct arena *arena,
	      accusations *list)
{
	size_t before = list->cnt;
	int error;

	if (!options->slow || !all_are_usual(list))
		return 0;
	error = accuse_part_by_past(past, options, arena, list);
	if (error == 0 && list->cnt == before)
		take_largest(past->now, list);
	return error;
}
