/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which worker made which others wait, and what the late worker did meanwhile.
 *
 * A collective ends on all its members together, so without any clock
 * synchronization the member with the shortest execution arrived last, and the
 * others' excess is waiting that it caused. Collectives are matched by sequence
 * number where the trace has one; else workers' lists are shifted against each
 * other until the ends of matched collectives differ by a constant (the clock
 * offset). What the late worker did between the previous collective and this
 * one, and its peers did not, is why.
 * Source: docs/method.md, "Late workers and their reasons" (not in the paper).
 */
#pragma once

#include "collective/shifts.h"
#include "localize/job.h"

/* Time worker w lost for the others in function f (index in job->functions). */
struct blame_why {
	uint32_t worker;
	uint32_t function; /* FRAME_NONE: time no listed function explains */
	double ns;	   /* over the window */
};

/* Late worker `from` made `to` wait, over the window. */
struct blame_wait {
	uint32_t from, to; /* worker indices */
	double ns;
	uint64_t cnt;
};

/* For how long others stood still for a worker, in one iteration of its fingerprint and group. */
struct blame_loss {
	uint32_t worker, group, iteration;
	double ns;
};

struct blame_worker {
	bool matched;		     /* at least one collective was matched */
	double lost_ns;		     /* waiting this worker caused as the last arriver: what its
			       * repair alone would give back, over the window */
	uint64_t last_cnt;	     /* collectives it was the last for, by more than noise */
	uint64_t matched_cnt;	     /* collectives it took part in */
	uint64_t late_iterations;    /* iterations in which it caused waiting */
	double *iteration_lost_ns;   /* by iteration of its fingerprint: lost_ns without: */
	double explained_by_comm_ns; /* lateness that came from waiting in other groups */
};

/* The two workers that lost most for the others in an iteration; 0: none lost anything. */
struct blame_worst {
	double most_ns, second_ns;
	uint32_t worker; /* that lost most_ns */
};

struct blame {
	struct blame_worker *workers; /* by worker index */
	struct blame_worst
		*worst; /* by iteration of the fingerprints, the longest of which counts */
	VEC(struct blame_why) why;    /* by (worker, function) */
	VEC(struct blame_wait) waits; /* the longest first */
	/* Those for worker w: waits.data[wait_idx[i]], i in [wait_first[w], wait_first[w + 1]). */
	size_t *wait_first;
	uint32_t *wait_idx;
	VEC(struct blame_loss) losses; /* by group */
	shift_groups groups;	       /* arrays in the arena */
	double lost_ns;		       /* sum over the workers */
	uint64_t matched_cnt;	       /* matched collectives */
	uint64_t unmatched_cnt;	       /* collectives that no other worker's list fitted */
};

/* Returns 0 or -ENOMEM. blame_done() is fine after either. */
_must_check_ int blame_find(const struct job *job, struct arena *arena, struct blame *ret);
void blame_done(struct blame *blame);

/* What a worker lost for the others in a function, over the window; 0 if none. O(log n). */
double blame_why_ns(const struct blame *blame, uint32_t worker, uint32_t function);

/*
 * Adds to ret_ns[w], by worker, for how long w waited over the window for each late worker, times
 * the late worker's weight_of[], by worker. O(waits).
 */
void blame_sum_waits(const struct blame *blame, const double *weight_of, double *ret_ns);

/* Matched collectives of the worker that has fewest. */
uint64_t blame_fewest_met(const struct job *job, const struct blame *blame);

/*
 * What these workers (indices, ascending) together cost an iteration at least, in ns: what
 * several lose in one group adds up, but groups that meet beside each other lose the same time,
 * and a worker late in one group is as late in the next for the same reason. Infinite where no
 * iterations are known. Returns 0 or -ENOMEM. O(losses).
 */
_must_check_ int blame_cost(const struct job *job, const struct blame *blame,
			    const uint32_t *workers, size_t cnt, double *ret_ns);
