/* SPDX-License-Identifier: Apache-2.0 */
/* Accuses hosts whose link is slow, by the rates of TCP between hosts (paths.h). */
#pragma once

#include "localize/witness/witness.h"

/*
 * Appends to out, arrays in arena; removes accusations of all workers' communication, which a slow
 * link explains. Returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_flow(const struct job *job, const struct accuse_options *options,
				struct arena *arena, accusations *out);
