/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting the events of a trace by (start, longest first, file order). Writers
 * leave long sorted runs, one a thread, so this merges the runs that are there,
 * over 8 bytes an event instead of a copy of the events.
 */
#pragma once

#include "format/event.h"

/* Returns 0 or -ENOMEM (events untouched). O(n log runs). */
_must_check_ int order_events(struct event *events, size_t cnt);
