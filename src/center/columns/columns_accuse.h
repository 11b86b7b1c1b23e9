/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witnesses of localize/witness that work on columns: difference and expectation.
 * Blame needs every execution of a collective, which columns do not hold; so the
 * accusations are those of localize/witness where no collective could be matched.
 * Indices of workers, frames and functions are those of the columns.
 * Source: PerfTracker eq. 6-11.
 */
#pragma once

#include "center/columns/columns.h"
#include "localize/witness/witness.h"

/* Each appends to out; arrays live in arena. Returns 0 or -ENOMEM. */
_must_check_ int columns_accuse_difference(const struct columns *columns,
					   const struct accuse_options *options,
					   struct arena *arena, accusations *out);
_must_check_ int columns_accuse_expectation(const struct columns *columns,
					    const struct accuse_options *options,
					    struct arena *arena, accusations *out);
