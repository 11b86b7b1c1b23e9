/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs of a job by their fingerprints: what takes longer or less long per
 * iteration, what is new, gone, renamed or elsewhere, and whether that could be chance.
 * Source: align.h for who is who, significance.h for chance.
 */
#pragma once

#include "base/err.h"
#include "format/fingerprint/fingerprint.h"
#include "model/comparison.h"

/* One run: fingerprints with their ranks assigned; those of one rank are repeats. */
struct compare_run {
	const struct fingerprint *const *fps;
	size_t cnt;
	const char *label; /* as the user named it */
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
 * Both runs have cnt >= 1. Returns 0; -ENODATA with a line in err when a run is empty;
 * -ENOMEM. On success ret owns all its memory (comparison_done()), the runs are not
 * needed any longer.
 */
_must_check_ int compare_runs(const struct compare_run *before, const struct compare_run *after,
			      const struct compare_options *options, struct comparison *ret,
			      struct err *err);
