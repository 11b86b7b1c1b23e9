/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of the agent's collectors from slices of iterations without and with
 * them by turns: off, on, off, ... Each slice with them is compared with the mean of its
 * neighbors without, so that a job which drifts costs nothing; the median over
 * these pairs is robust against a pair disturbed by another cause.
 *
 * The first iteration of a slice is left out: it carries the switching. Only marks that
 * begin an iteration count: those of several optimizers come at unequal distances.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"

#define SLICES_MAX 64u
#define SLICES_PAIRS_MIN 3u /* fewer give no result */

struct slices_plan {
	uint64_t start_step;  /* the count of the iteration mark that begins slice 0 */
	uint64_t slice_steps; /* whole iterations, at least 2 */
	uint64_t slice_cnt;   /* 3..SLICES_MAX; the odd ones are "on" */
	uint32_t stride;      /* iteration marks of one iteration */
};

struct slices {
	struct slices_plan plan;
	struct slice {
		uint64_t first_step, last_step; /* of the marks behind the times; 0: none yet */
		int64_t first_ns, last_ns;
	} slices[SLICES_MAX];
	bool over; /* the end of the last slice was seen */
};

struct slices_cost {
	double frac;	   /* time of an iteration with / without, minus 1; may be negative */
	double error_frac; /* one standard error of it */
	size_t pair_cnt;
};

/* Returns 0, or -EINVAL for a plan out of range. */
_must_check_ int slices_begin(struct slices *slices, const struct slices_plan *plan);

/* The iteration mark with the count `step` came at time_ns. Steps of other slices, or
 * that come twice, are ignored. */
void slices_mark(struct slices *slices, uint64_t step, int64_t time_ns);

/* Returns 0, or -ENODATA when fewer than SLICES_PAIRS_MIN pairs are complete. */
_must_check_ int slices_cost(const struct slices *slices, struct slices_cost *ret);

/* Adds another measurement of the same cost to sum, each weighted by 1 / error^2. */
void slices_combine(struct slices_cost *sum, const struct slices_cost *other);
