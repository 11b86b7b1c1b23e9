/* SPDX-License-Identifier: Apache-2.0 */
/* Turns sampled stacks into Python functions with a begin and an end: see flight.h. */
#pragma once

#include "read/flight/flight_parts.h"

/*
 * An operator or a scope of the user begins or ends here. weight: how bad a place
 * the time from here to the next edge is for a change of stacks. Functions do not
 * end inside of operators that they called, and those that a scope holds begin and
 * end in it: (operators << 32) - scopes.
 */
struct flight_edge {
	int64_t time_ns, weight;
};

/* The input for one thread's frames, beside its samples. */
struct flight_thread {
	uint32_t tid;
	uint16_t lane;
	const struct flight_edge *edges; /* by time */
	size_t edge_cnt;
};

/* What a thread was in below its frames: a system call, a wait for the GIL. */
struct flight_leaf {
	int64_t start_ns, end_ns;
	uint32_t name;
	struct link link;
	uint16_t lane;
};

typedef VEC(struct flight_leaf) leaf_vec;

/*
 * samples[cnt] of one thread, sorted by time, as events. Adds Python frames at once;
 * leaves come behind operators and are put into a list. Returns 0 or -ENOMEM.
 */
_must_check_ int flight_stacks(struct flight_pass *pass, const struct flight_thread *thread,
			       const struct ring_record *samples, size_t cnt, leaf_vec *leaves);

/* The stack samples of all threads: by thread, then by time. Returns 0 or -ENOMEM. */
_must_check_ int flight_sort_samples(const struct flightlog *log, record_vec *ret);
