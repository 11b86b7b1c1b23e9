/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of the agent's collectors by pairs of slices of iterations, one with them and
 * one without. A coin decides for each pair which slice comes first (overhead_slice_is_on()), so
 * differences within pairs are symmetric around the cost whatever else the job does: drift, slow
 * waves and pauses widen the interval of detect/signedrank.h, and cannot shift it.
 *
 * The first iteration of a slice is left out: it carries the switching. Only marks that
 * begin an iteration count: those of several optimizers come at unequal distances.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"

#define SLICES_MAX 64u
#define SLICES_PAIRS_MAX (SLICES_MAX / 2)

struct slices_plan {
	uint64_t seed;	      /* of the coins: overhead_seed() */
	uint64_t start_step;  /* the count of the iteration mark that begins slice 0 */
	uint64_t slice_steps; /* whole iterations, at least 2 */
	uint64_t slice_cnt;   /* even, 2..SLICES_MAX: slices 2i and 2i + 1 are a pair */
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

/* Returns 0, or -EINVAL for a plan out of range. */
_must_check_ int slices_begin(struct slices *slices, const struct slices_plan *plan);

/* The iteration mark with the count `step` came at time_ns. Steps of other slices, or
 * that come twice, are ignored. */
void slices_mark(struct slices *slices, uint64_t step, int64_t time_ns);

/*
 * The logarithm of the time of an iteration with the collectors, divided by that without, for
 * each pair; NAN for a pair that is not complete. Returns the number of pairs of the plan.
 */
size_t slices_pairs(const struct slices *slices, double ret[static SLICES_PAIRS_MAX]);

/*
 * What switching the collectors on and off cost in all slices: by how much the first iteration
 * after a switch is longer than the others of its slice (median), times the number of switches.
 */
double slices_switching_ns(const struct slices *slices);
