/* SPDX-License-Identifier: Apache-2.0 */
/* The first iteration of a window: devices are busy with work whose records began too late. */
#pragma once

#include "localize/witness/witness.h"

/*
 * Takes accusations out of the list of workers that waited for a device without recorded work, in
 * their first iteration only: the work was launched before the records began. A worker whose
 * window begins an iteration later than that of its peers waits there alone. So does it take those
 * out whose place is torch's profiler itself, which starts and ends on each rank in its own time.
 */
void beginning_drop(const struct job *job, accusations *list);
