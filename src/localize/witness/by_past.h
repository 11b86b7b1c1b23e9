/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness of the job's own past: which workers spend more time of their own in a place than
 * in a healthy window of the same job. It needs no peers. What is accused must be beyond the
 * noise of both windows and explain the slowdown: not much less, and not much more.
 */
#pragma once

#include "localize/past.h"
#include "localize/witness/witness.h"

/*
 * Accuses the workers that grew most, with those that grew at the same place. What another
 * witness accuses already keeps its accusation, and a loss without a place gets this one.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_past(const struct past *past, const struct accuse_options *options,
				struct arena *arena, accusations *out);

/*
 * Adds what grew most, though it explains little of a slow job's slowdown (part_of_ns). Returns 0
 * or -ENOMEM.
 */
_must_check_ int accuse_part_by_past(const struct past *past, const struct accuse_options *options,
				     struct arena *arena, accusations *out);

/* Sets before_ns and now_ns of all accusations of a place. Returns 0 or -ENOMEM. */
_must_check_ int by_past_recall(const struct past *past, accusations *list);
