/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The center of differences that are symmetric around it, and an interval that contains it:
 * Hodges and Lehmann's estimate, the median of the means of all pairs of differences (Walsh
 * averages), and the interval that inverts Wilcoxon's signed-rank test.
 *
 * No distribution is assumed. If each difference is "treated minus untreated" and a fair coin
 * decided which of the two came first, differences are symmetric by design: noise that depends on
 * time, such as drift, waves or pauses, changes the width of the interval and not its coverage.
 * Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3.1 to 3.3.
 */
#pragma once

#include "base/base.h"

#define SIGNEDRANK_MAX 4096u /* differences */

struct signedrank {
	double center, low, high;
};

/*
 * diffs[cnt]: finite; sorted by the call. confidence: 0.95 gives an interval that contains the
 * center in at least 95 of 100 cases. Returns 0, or -ENODATA if cnt is too small for that
 * confidence (six for 0.95) or beyond SIGNEDRANK_MAX. Allocates nothing. O(cnt log cnt).
 */
_must_check_ int signedrank_interval(double *diffs, size_t cnt, double confidence,
				     struct signedrank *ret);
