/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a difference of two runs with the repetition available, and states the confidence of the
 * result. Private to this folder.
 */
#pragma once

#include "compare/runtree.h"
#include "model/comparison.h"

/* The repetition available in both runs, and scratch memory. */
struct judge {
	const struct run_tree *before, *after;
	unsigned int basis; /* enum comparison_basis */
	bool paired;	    /* both runs have the same ranks, and many */
	double *scratch[2]; /* by rank or repeat */
};

/* Returns 0 or -ENOMEM; judge_done() is fine after either. The trees must outlive it. */
_must_check_ int judge_init(struct judge *judge, const struct run_tree *before,
			    const struct run_tree *after);
void judge_done(struct judge *judge);

/* Times per iteration of both runs, by window, and their deviation over the iterations. */
struct judge_values {
	const double *before, *before_spread, *after, *after_spread;
};

/*
 * The probability of such a difference without a cause; NAN if it cannot be tested. The larger of
 * those over ranks and over iterations, or, with repeats on both sides, over windows.
 */
double judge_chance(const struct judge *judge, const struct judge_values *values);

/*
 * Low for one window of one worker: the natural variation between runs is unknown, unless a
 * function that ran in each iteration of one run is absent in the other (structural). Medium with
 * three ranks, high with three windows of each run.
 */
enum confidence judge_confidence(const struct judge *judge, bool significant, bool structural);
