/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the flight log's reader share: flight.c (the order of work, events
 * of operators, collectives, exact calls), items.c (their records), devicework.c (the work
 * of GPUs), ncclwork.c (records of the NCCL plugin).
 */
#pragma once

#include "read/common/build.h"
#include "read/flight/flight.h"
#include "read/flight/labels.h"

#include <string.h>

/* One interval of a thread: an operator, annotation, collective or exact call. */
struct flight_item {
	int64_t start_ns, dur_ns;
	uint16_t kind; /* enum flight_kind */
	uint32_t what; /* string or frame */
	uint32_t args; /* as in struct event */
	uint32_t order;
};

typedef VEC(struct flight_item) item_vec;

/* A thread is in a call of a GPU's runtime or driver. */
struct flight_gpu_call {
	uint32_t tid;
	int64_t start_ns, end_ns;
};

/* State of one pass. */
struct flight_pass {
	const struct flightlog *log;
	int64_t start_ns, end_ns;
	int64_t to_wall_ns; /* added to CLOCK_MONOTONIC */
	struct build *build;
	struct trace *trace;
	struct flight_names names;
	record_vec marks;	/* by time */
	int64_t period_ns;	/* between two samples */
	uint32_t next_id;	/* of a Python frame's event */
	uint32_t *args_of_code; /* of operators: by the code of their elements; 0: none yet */
	VEC(struct flight_gpu_call) gpu_calls; /* by thread, then time */
};

/*
 * Adds what a thread recorded in the window: collectives once and whole, the others cut
 * to it; outer ones before inner ones of the same interval, and sorted by time where
 * calls of Python are among them. Returns 0 or -ENOMEM.
 */
_must_check_ int flight_items(struct flight_pass *pass, const struct flightlog_lane *lane,
			      item_vec *items);

/*
 * The arguments of the collective in records[0]: records behind it that belong to it by
 * their kind hold them. *ret: as in struct event. Returns 0 or -ENOMEM.
 */
_must_check_ int flight_collective_args(struct flight_pass *pass, const struct ring_record *records,
					size_t cnt, uint32_t *ret);

/*
 * Adds what GPUs did in the window, whole, and the calls that launched it. Kernels of a
 * collective know what the launching thread knew of it. Returns 0 or -ENOMEM.
 */
_must_check_ int flight_gpu(struct flight_pass *pass);

/* Fills gpu_calls for all threads; call it before flight_gpu(). Returns 0 or -ENOMEM. */
_must_check_ int flight_gpu_calls(struct flight_pass *pass);

/* Whether a thread was in calls of the GPU for half of the time or more. */
bool flight_in_gpu_call(const struct flight_pass *pass, uint32_t tid, int64_t start_ns,
			int64_t end_ns);

/*
 * Adds the window's collectives as recorded by the NCCL plugin, and their network transfers.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int flight_nccl(struct flight_pass *pass);

/* Whether all calls of Python were traced; without, some C functions may be. */
bool flight_is_exact(const item_vec *items);

/* "gloo:all_reduce": what follows the colon; NULL: another name. */
const char *flight_collective(const char *name);

static inline bool flight_is_call(const struct flight_item *item)
{
	return item->kind == FLIGHT_PYTHON || item->kind == FLIGHT_C_CALL;
}

static inline bool flight_has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* STRTAB_NONE: out of memory. */
_must_check_ static inline uint32_t flight_intern(struct trace *trace, const char *text)
{
	return strtab_intern(&trace->strings, text, strlen(text));
}

/* Adds an event of [start, end) of CLOCK_MONOTONIC. Returns 0 or -ENOMEM. */
_must_check_ int flight_add(struct flight_pass *pass, struct event event, int64_t start_ns,
			    int64_t end_ns, const struct link *link);
