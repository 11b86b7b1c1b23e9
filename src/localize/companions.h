/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers who suffer from the same trouble of a host as the accused. Only the last to
 * arrive is blamed for a wait, and of four workers on one starved host one is last; but
 * the trouble is the host's, and so are the workers that have it.
 */
#pragma once

#include "localize/accuse.h"

/*
 * Adds to the workers of each accusation by blame whose cause is CPU starvation those of
 * the same hosts whose threads waited for a CPU alike, measured by the workers of other
 * hosts. New arrays live in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int companions_join(const struct job *job, struct arena *arena, accusations *list);
