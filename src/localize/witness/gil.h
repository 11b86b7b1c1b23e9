/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the interpreter's lock as one place: it happens wherever the training thread calls
 * or returns to Python, a little in many functions, and what is to be repaired is in none of them.
 */
#pragma once

#include "localize/past.h"
#include "localize/witness/excess.h"

/* Whether a frame is such a wait. */
bool gil_is_wait(const struct job_frame *frame);

/*
 * Sums the waits of each worker; the place named is where most of it is. *ret_is_wait: by function
 * of the job; NULL where there is no wait, and then ret is not filled. Arrays live in arena.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int gil_measure(const struct job *job, const struct expect_table *expect,
			     struct arena *arena, struct excess *ret, const bool **ret_is_wait);

/* How much longer than in its own past worker w waits, per iteration; it is known there. */
double gil_growth_ns(const struct past *past, size_t w);
