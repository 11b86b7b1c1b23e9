/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times in a window in which no GPU of the worker had work, in order, so that the idle time
 * within any interval is known without a walk over the gaps.
 */
#pragma once

#include "base/vec.h"

struct gap {
	int64_t start_ns, end_ns;
	int64_t before_ns; /* length of all gaps before this one */
	bool charged;	   /* a call that waited for the device has been charged with it */
};

typedef VEC(struct gap) gap_list;

/* Appends a gap; gaps come in order and do not touch. Returns 0 or -ENOMEM. */
_must_check_ int gaps_add(gap_list *gaps, int64_t start_ns, int64_t end_ns);

/* The idle time in [start_ns, end_ns). O(log n). */
int64_t gaps_within(const gap_list *gaps, int64_t start_ns, int64_t end_ns);

/*
 * The same for intervals in order of start_ns: near is 0 before the first of them, and remembers
 * where the last one began. O(gaps passed).
 */
int64_t gaps_within_next(const gap_list *gaps, size_t *near, int64_t start_ns, int64_t end_ns);

/* The last gap that begins at time_ns or before it; NULL: none does. O(log n). */
struct gap *gaps_last(const gap_list *gaps, int64_t time_ns);
