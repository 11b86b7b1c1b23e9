/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to accuse that compare groups of workers with each other: process groups that do the same
 * side by side, and the stages of a pipeline. Called by localize() after those of witness.h.
 */
#pragma once

#include "localize/witness/witness.h"

/* Both append to out, arrays in arena; each returns 0 or -ENOMEM. Their files say what of. */
_must_check_ int accuse_by_sisters(const struct job *job, const struct blame *blame,
				   const struct accuse_options *options, struct arena *arena,
				   accusations *out);
_must_check_ int accuse_by_stages(const struct job *job, const struct accuse_options *options,
				  struct arena *arena, accusations *out);
