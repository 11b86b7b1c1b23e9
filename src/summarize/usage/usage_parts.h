/* SPDX-License-Identifier: Apache-2.0 */
/* What usage.c and totals.c share. Not for other files. */
#pragma once

#include "summarize/usage/gaps.h"
#include "summarize/usage/usage.h"

/* State of one look at the device work of a pass. */
struct usage_look {
	struct pass *p;
	struct fingerprint *fp;
	gap_list gaps;
	uint64_t *delays; /* histogram of launch delays */
};

/*
 * Fills fp->totals, and alloc_ns of fp->uses; charges the calls that wait for the device
 * (usage_charge_call()). Needs the gaps. Returns 0 or -ENOMEM.
 */
_must_check_ int totals_add(struct usage_look *look);

/*
 * Adds what a call that waited for the device cost at most: the shorter of its wait and of the gap
 * that it ended in, each gap counted once. launches: it is a launch that waited for its kernel.
 */
void usage_charge_call(struct usage_look *look, const struct event *call, bool launches);

/* The use of the iteration in which a moment of the trace lies; NULL: of none. O(log n). */
struct fp_iteration_use *usage_iteration(struct usage_look *look, int64_t time_ns);
