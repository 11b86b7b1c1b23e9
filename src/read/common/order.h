/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting the events of a trace by (start, longest first, smallest scratch first, file order). Writers
 * leave long sorted runs on each lane; order_events() merges these runs. Pages of moved
 * events are freed during the merge: a second copy never exists as a whole.
 */
#pragma once

#include "model/event.h"

/*
 * *events was allocated by malloc() and may be replaced. Returns 0, -ENOMEM, -EOVERFLOW
 * (2^32 events); then they are untouched. O(n log runs). Temporary memory: 4 bytes an event.
 */
_must_check_ int order_events(struct event **events, size_t cnt);
