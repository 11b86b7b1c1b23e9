/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witnesses of accuse.h that a crowd can be asked: difference and expectation.
 * Blame needs collectives one by one, which don't travel from so many workers; so
 * these are the answers that accuse.h gives where no collective could be matched.
 * Indices are those of the crowd.
 * Source: PerfTracker eq. 6-11.
 */
#pragma once

#include "center/columns/columns.h"
#include "localize/witness/witness.h"

/* Each appends to out; arrays live in arena. Returns 0 or -ENOMEM. */
_must_check_ int crowd_accuse_difference(const struct crowd *crowd,
					 const struct accuse_options *options, struct arena *arena,
					 accusations *out);
_must_check_ int crowd_accuse_expectation(const struct crowd *crowd,
					  const struct accuse_options *options, struct arena *arena,
					  accusations *out);
