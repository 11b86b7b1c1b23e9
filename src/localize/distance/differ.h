/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential distance: how unlike its peers a worker is in one function.
 * Source: PerfTracker eq. 8-11. It counts how many peers differ, not by how much:
 * a fluctuating victim of a slow link is further from the healthy ones than the
 * slow link itself, but it has company.
 */
#pragma once

#include "base/base.h"
#include "model/thresholds.h"

/* Behavior of one function on one worker; NAN: absent. */
struct differ_point {
	double beta, mu, sigma;
};

struct differ_options {
	uint64_t seed; /* of the sample of peers */
	bool exact;    /* count all peers */
};

/*
 * points[cnt] -> Delta of eq. 9 in ret_delta[cnt] and the threshold median +
 * 5 MAD of eq. 11 in *ret_threshold. A dimension takes part when both workers
 * have it. Returns 0 or -ENOMEM. O(cnt * N).
 */
_must_check_ int differ_find(const struct differ_point *points, size_t cnt,
			     const struct differ_options *options, double *ret_delta,
			     double *ret_threshold);

/* The first want of idx[cnt] become a random sample of 0..cnt-1 (Fisher-Yates). O(cnt). */
void differ_draw(uint32_t *idx, size_t cnt, size_t want, uint64_t seed);
