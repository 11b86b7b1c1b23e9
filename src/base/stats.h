/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order statistics for detection and localization. All functions except stats_middle() sort their
 * array; none allocates. Values must not be NaN.
 */
#pragma once

#include "base/base.h"

/* Median of values[cnt], mean of the two middle ones when cnt is even; 0 when empty. */
double stats_median(double *values, size_t cnt);

/* The same median by selection, for large arrays: leaves values partially ordered. O(cnt). */
double stats_middle(double *values, size_t cnt);

/*
 * Median absolute deviation around center (PerfTracker eq. 11, MAD_f). Overwrites values with the
 * deviations.
 */
double stats_mad(double *values, size_t cnt, double center);

/* Value at quantile 0..1 by linear interpolation; 0 when empty. */
double stats_quantile(double *values, size_t cnt, double quantile);
