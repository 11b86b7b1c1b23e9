/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of a worker's flight recorder, each with the reason if it is absent, and counters of
 * lost records.
 */
#pragma once

#include "base/base.h"

/* The sources of a recorder. An absent source gives the reason; a working one may have a remark. */
enum flight_source {
	FLIGHT_SOURCE_STACKS,
	FLIGHT_SOURCE_OPERATORS,
	FLIGHT_SOURCE_COLLECTIVES,
	FLIGHT_SOURCE_GIL,
	FLIGHT_SOURCE_SYSCALLS,
	FLIGHT_SOURCE_GC,
	FLIGHT_SOURCE_EXACT, /* of the last window that requested it */
	FLIGHT_SOURCE_GPU,   /* of the last window */
	FLIGHT_SOURCE_CNT
};

enum flight_source_state { FLIGHT_UNTRIED, FLIGHT_WORKS, FLIGHT_ABSENT };

struct flight_source_status {
	_Atomic uint32_t state; /* enum flight_source_state; stored with release after why */
	char why[124];		/* NUL-terminated */
};

/* Records that were lost. X(field, what) */
#define FLIGHT_DROP_LIST(X)                                             \
	X(strings, "names beyond the table of names")                   \
	X(frames, "Python functions beyond their table")                \
	X(nodes, "call stacks beyond their table")                      \
	X(lanes, "records of threads beyond the table of lanes")        \
	X(unreadable, "stack samples could not be read")                \
	X(late, "samples that came later than twice their period")      \
	X(threads, "threads that were not sampled: there are too many") \
	X(nested, "operators nested deeper than is remembered")         \
	X(calls, "exact calls left out: they were short and many")      \
	X(gpu, "records of the GPU beyond buffers, tables or rings")    \
	X(gpu_untimed, "records of the GPU without times")              \
	X(nccl, "events of NCCL beyond the pool of those under way")    \
	X(timed, "calls of the GPU that were to be timed and were not")

struct flight_drops {
#define X(field, what) _Atomic uint64_t field;
	FLIGHT_DROP_LIST(X)
#undef X
};
