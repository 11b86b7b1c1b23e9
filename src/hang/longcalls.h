/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that take long in healthy jobs, too: checkpoints, evaluations, compilations. A table of
 * parts of names. While a job has been silent for less than HANG_PAUSE_NS, a rank in such a function is no
 * hang; later it is one, and the function is named.
 */
#pragma once

#include "base/base.h"

#define HANG_PAUSE_NS (300 * NSEC_PER_SEC)

/* Dumps that are written so soon after a collective was launched show no hang. */
#define HANG_QUIET_NS (5 * NSEC_PER_SEC)

/*
 * stack: functions "file.py(1): f", '\n' between. Returns what such a function does ("saves or loads a
 * checkpoint"), NULL: none is on the stack. O(length of the stack).
 */
const char *longcalls_find(const char *stack);
