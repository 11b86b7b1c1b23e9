/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: workers that do the same work. Pipeline stages, expert groups and roles
 * differ by design, so workers are compared only inside groups that compute the
 * same functions.
 * Source: PerfTracker appendix A; docs/method.md, "Which workers are compared".
 */
#pragma once

#include "localize/job.h"
#include "model/thresholds.h"

/*
 * Sets group of every worker and job->group_cnt. The weight of a function is its
 * larger beta on the two workers: a slow function does not put a worker into another
 * group, an absent function does. Functions of one name count as one function,
 * whatever their callers. Returns 0 or -ENOMEM. O(workers * groups * functions +
 * functions^2).
 */
_must_check_ int peers_find(struct job *job);

/* Whether two workers do the same work, by the sums of the weights of what both compute, or one. */
static inline bool peers_alike(double both_frac, double either_frac)
{
	return either_frac < PEERS_WORK_MIN || both_frac >= PEERS_ALIKE * either_frac;
}
