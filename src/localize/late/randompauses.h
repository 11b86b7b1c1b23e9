/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses that strike at random. Many unrelated places on the host, each long on a few
 * workers of its own: one thing strikes at random, and in Python that is the garbage
 * collector.
 * Source: PerfTracker section 6.2, problem 3.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Of the accusations from first on, joins such pauses into one of the longest, which comes
 * last. worker_cnt: of all. Arrays live in arena. Returns 0 or -ENOMEM. O(accused workers).
 */
_must_check_ int pauses_join(accusations *list, size_t first, size_t worker_cnt,
			     struct arena *arena);
