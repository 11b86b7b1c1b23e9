/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that runs slow where nothing explains enough of it: a machine with other loads, or several
 * causes. The largest part that was found is named, as weak evidence.
 */
#pragma once

#include "localize/past.h"
#include "localize/witness/witness.h"

/*
 * Where all accusations in the list are usual and the job is slow: adds what grew most since the
 * past, or else takes the largest part among the usual ones as no longer usual. Arrays live in
 * arena. Returns 0 or -ENOMEM.
 */
_must_check_ int part_find(const struct past *past, const struct accuse_options *options,
			   struct arena *arena, accusations *list);
