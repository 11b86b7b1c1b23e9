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
 * Where blame knows what each worker was late for: accuses all workers of such pauses once,
 * and takes those accusations out that they explain. A pause is a time that a worker
 * stood in a function of Python in some iterations but not in all, computing, and its peers
 * pass at once. Different workers pause in different functions; one function that is slow
 * now and then is not one of these pauses, nor are the functions below it. Arrays live in arena.
 * Returns 0 or -ENOMEM. O(shares of collectives).
 */
_must_check_ int accuse_by_pauses(const struct job *job, const struct blame *blame,
				  const struct accuse_options *options, struct arena *arena,
				  accusations *list);

/*
 * Of the accusations from first on, joins such pauses into one of the longest, which comes
 * last. worker_cnt: of all. Arrays live in arena. Returns 0 or -ENOMEM. O(accused workers).
 */
_must_check_ int pauses_join(accusations *list, size_t first, size_t worker_cnt,
			     struct arena *arena);
