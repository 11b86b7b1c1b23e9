/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Critical duration of one execution: the part in which the hardware was busy. A worker that enters
 * a collective early mostly waits; a mean over the whole execution would blame it for the delay of
 * its peers.
 * Source: PerfTracker section 4.2, Algorithm 1.
 */
#pragma once

#include "base/base.h"

#define CRITDUR_SHARE 0.8 /* of the total utilization; above 1/2 makes the interval unique */

/* Samples [begin, end) of one execution. Empty when begin == end. */
struct critdur {
	size_t begin, end;
};

/*
 * util_frac[sample_cnt]: utilization per sample, each in 0..1, equally spaced. Finds the smallest
 * gap g for which some run of samples holds at least CRITDUR_SHARE of the total and no more than g
 * consecutive zeros, and returns that run without leading and trailing zeros. Sums are added left
 * to right and compared exactly.
 *
 * Returns 0, or -EINVAL if a sample is outside 0..1 or NaN. Without activity the run is empty,
 * which is not an error. Allocates nothing. O(n log n). *ret is written on success only.
 */
_must_check_ int critdur_find(const double *util_frac, size_t sample_cnt, struct critdur *ret);
