/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers who have the same trouble as the accused. Only the last to arrive is blamed for
 * a wait; one of four workers on a starved host is last, and of two that read from a slow
 * disk the faster one never is. Repairing the accused alone would give nothing back.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Adds to the workers of each accusation by blame: those who lose about as much at the
 * same place of the program as the accused, measured by the rest; and, where the cause is
 * CPU starvation, those of the same hosts whose threads waited for a CPU alike, measured by
 * the other hosts. New arrays live in arena. Returns 0 or -ENOMEM.
 */
_must_check_ int companions_join(const struct job *job, struct arena *arena, accusations *list);
