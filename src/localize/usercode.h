/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose code a frame is (base/text/pythoncode.h). Time is lost in a system call or in a library, but
 * the line to look at is the user's function that called it.
 */
#pragma once

#include "localize/witness/witness.h"

/* Whether a frame is a Python function that belongs neither to Python nor to a known library. */
bool usercode_is(const struct job_frame *frame);

/*
 * The frame to name for a place: the innermost function of the user around it that is no part of
 * the training loop. For a system call or built-in without such a function it is the outermost
 * library function below the loop; else the place itself. O(depth).
 */
uint32_t usercode_around(const struct job_frame *frames, uint32_t frame);

/*
 * Moves accusations of a place on the host to the frame around it by usercode_around(), unless
 * most of what the accused have more there than others lies elsewhere below that frame; then to
 * the innermost function of the user that holds most of it. An operator that only the accused run is
 * named by its caller. Returns 0 or -ENOMEM.
 */
_must_check_ int usercode_name(const struct job *job, accusations *list);

/*
 * Time per iteration of the typical accused at a place where none of the others spends any, beyond
 * what a sampler may mistake: they do something that their peers do not. 0: they do. scratch: as
 * many as there are workers.
 */
double usercode_extra_ns(const struct job *job, const struct accusation *a, double *scratch);
