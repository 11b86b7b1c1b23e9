/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a difference of means could be chance. Three kinds of repetition serve as samples:
 * windows (several profiles of each run), ranks of one window, iterations of one window. Ranks that
 * wait for each other, and consecutive iterations, vary together, so the larger p of these two
 * counts; windows count alone.
 * Source: B. L. Welch, Biometrika 34 (1947); Y. Benjamini and Y. Hochberg, JRSS B 57 (1995).
 */
#pragma once

#include "base/base.h"

/* A mean, the variance of that mean, and its degrees of freedom. */
struct estimate {
	double mean, variance, freedom;
};

/* The estimate from values[cnt], cnt >= 2. */
struct estimate estimate_of(const double *values, size_t cnt);

/*
 * Two-sided probability that estimates of one truth differ by this much (Welch's t). NAN when
 * neither varies and both are equal; 0 when neither varies and they differ.
 */
double significance_welch(struct estimate a, struct estimate b);

/*
 * The same for cnt pairs (cnt >= 2): ranks of one role on both sides. after[i] -
 * before[i] is tested against 0.
 */
double significance_paired(const double *before, const double *after, size_t cnt);

/*
 * Benjamini-Hochberg: p[cnt] -> q[cnt]; among those with q <= level, at most a share
 * of level is expected to be chance. NAN stays NAN and is not counted. order[cnt] is
 * scratch. O(cnt log cnt).
 */
void significance_adjust(const double *p, size_t cnt, size_t *order, double *q);
