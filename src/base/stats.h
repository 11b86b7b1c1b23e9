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

/* Standard deviation of a normal sample, in median absolute deviations. */
#define STATS_MAD_TO_SD 1.4826

/* What the medians of all values but one need: the values around the middle. */
struct stats_others {
	double below, middle, above;
	size_t cnt;
};

/* Of values[cnt], which are sorted. O(cnt * log(cnt)), and then O(1) for each median. */
struct stats_others stats_others_of(double *values, size_t cnt);

/* stats_median() of the values without one that equals value. */
double stats_others_median(const struct stats_others *others, double value);

/* Value at quantile 0..1 by linear interpolation; 0 when empty. */
double stats_quantile(double *values, size_t cnt, double quantile);
