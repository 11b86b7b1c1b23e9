/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers with the same trouble as the accused. Only the last to arrive is blamed for a
 * wait: one of four workers on a starved host, or the slower of two that read from a slow
 * disk. Repairing the accused alone would gain nothing.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Adds workers to each accusation by blame: those that lose about as much at the same
 * place of the program as the accused, measured by the rest; and, where the cause is
 * CPU starvation, those of the same hosts whose threads waited for a CPU alike, measured by
 * the other hosts. New arrays live in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int companions_join(const struct job *job, struct arena *arena, accusations *list);
