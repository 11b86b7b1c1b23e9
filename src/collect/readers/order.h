/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting the events of a trace by (start, longest first, file order). Writers
 * leave long sorted runs on each lane, so this merges the runs that are there, over
 * 8 bytes an event instead of a copy of the events.
 */
#pragma once

#include "format/event.h"

/* Returns 0, -ENOMEM, -EOVERFLOW (2^32 events); then they are untouched. O(n log runs). */
_must_check_ int order_events(struct event *events, size_t cnt);
