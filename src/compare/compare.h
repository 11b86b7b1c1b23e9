/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs of a job by their fingerprints: functions that take more or less time per
 * iteration, that are new, removed, renamed or moved, and whether the difference could be chance.
 * Source: pairing.h for matching functions, significance.h for chance.
 */
#pragma once

#include "base/err.h"
#include "format/fingerprint/fingerprint.h"
#include "model/comparison.h"

/* One run: fingerprints with their ranks assigned; those of one rank are repeats. */
struct compare_run {
	const struct fingerprint *const *fps;
	size_t cnt;
	const char *label; /* the user's name of the run */
};

struct compare_options {
	double min_change_pct; /* of the iteration before; smaller changes are summed up */
	double level;	       /* of significance, in 0..1 */
};

static inline struct compare_options compare_defaults(void)
{
	return (struct compare_options){ .min_change_pct = 1, .level = 0.05 };
}

/*
 * Both runs have cnt >= 1. Returns 0; -ENODATA with a line in err when a run is empty; -ENOMEM. On
 * success ret owns all its memory (comparison_done()) and does not refer to the runs.
 */
_must_check_ int compare_runs(const struct compare_run *before, const struct compare_run *after,
			      const struct compare_options *options, struct comparison *ret,
			      struct err *err);
