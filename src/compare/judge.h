/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a difference of two runs with all repetition there is, and says how far that
 * can be believed. Not for other folders.
 */
#pragma once

#include "compare/runtree.h"
#include "model/comparison.h"

/* What both runs offer to test with, and room for it. */
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
 * The chance of such a difference without a cause; NAN when nothing can tell. The larger
 * of those over ranks and over iterations, or, with repeats on both sides, over windows.
 */
double judge_chance(const struct judge *judge, const struct judge_values *values);

/*
 * Low for one window of one worker: nothing tells how much runs differ by themselves,
 * unless a function that ran in each iteration of one run is absent in the other
 * (structural). Medium with three ranks, high with three windows of each run.
 */
enum confidence judge_confidence(const struct judge *judge, bool significant, bool structural);
