/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order statistics used by detection and localization. All functions but
 * stats_middle() sort the array they are given; none allocates. Values must not be NaN.
 */
#pragma once

#include "base/base.h"

/* Median of values[cnt], mean of the two middle ones when cnt is even; 0 when empty. */
double stats_median(double *values, size_t cnt);

/* The same median without sorting, for many values: they are left in some order. O(cnt). */
double stats_middle(double *values, size_t cnt);

/*
 * Median absolute deviation around center (PerfTracker eq. 11, MAD_f). values
 * are overwritten by the deviations.
 */
double stats_mad(double *values, size_t cnt, double center);

/* Value at quantile 0..1 by linear interpolation; 0 when empty. */
double stats_quantile(double *values, size_t cnt, double quantile);
