/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event model: produced by every collector and reader, consumed by summarize. One `struct
 * trace` is one profiled window of one worker.
 *
 * Times are int64_t nanoseconds on one clock per trace (CLOCK_MONOTONIC live; from files absolute
 * ns, computed in integers, never through a double).
 * Source: PerfTracker section 4.2; event_kinds.h.
 */
#pragma once

#include "base/base.h"
#include "base/strtab.h"
#include "model/event_kinds.h"
#include "model/iterations.h"
#include "model/resource.h"
#include "model/trace_drops.h"

#include <limits.h>

#define EVENT_NONE UINT32_MAX
#define RANK_UNKNOWN (-1)

/* One interval. 32 bytes: a window has millions of them. */
struct event {
	int64_t start_ns;
	int64_t dur_ns;	 /* >= 0 */
	uint32_t name;	 /* id in trace.strings, as written in the trace */
	uint32_t parent; /* KIND_PYTHON: index of the calling frame's event, possibly on another
			  * lane. KIND_KERNEL, KIND_GPU_MEMOP: index of the launching runtime
			  * event (by correlation). EVENT_NONE when there is none. */
	uint32_t args;	 /* index + 1 in trace.args; 0: none */
	uint16_t lane;	 /* index in trace.lanes */
	uint8_t kind;	 /* enum event_kind */
	uint8_t scratch; /* of the reader; 0 in a finished trace */
};
_Static_assert(sizeof(struct event) == 32, "events are counted in millions");

/* Optional data of an event. Absent numbers are -1. */
struct event_args {
	int64_t bytes;	  /* payload of a copy or collective on this rank */
	int64_t elements; /* operators: input elements of all tensors; kernels: threads launched */
	int64_t seq;	  /* collective: sequence number in its group */
	uint32_t group;	  /* collective: string id of the group's name; 0: unknown */
	uint32_t group_ranks; /* collective: string id of "[0, 1]"; 0: unknown */
	uint32_t collective;  /* collective: string id of "allreduce"...; 0: unknown */
	int32_t group_size;
};

enum lane_type {
	LANE_THREAD,
	LANE_STREAM,
	LANE_OTHER, /* "Spans", "Traces": bookkeeping of the profiler */
};

/* One thread or one GPU stream. */
struct lane {
	int64_t pid;   /* OS process; device index for streams */
	int64_t tid;   /* OS thread (old files: negative); stream for streams */
	uint32_t name; /* string id of thread_name; 0: unknown */
	uint8_t type;  /* enum lane_type */
};

struct trace_meta {
	char *source;	     /* path it was read from; owned */
	int rank;	     /* from distributedInfo; RANK_UNKNOWN when absent */
	int world_size;	     /* likewise; -1 */
	char *host;	     /* host_name; owned; NULL when absent */
	char *backend;	     /* "nccl", "gloo"; owned; NULL when absent */
	char *device_name;   /* first device's name; owned; NULL when absent */
	int64_t base_ns;     /* baseTimeNanoseconds, 0 when absent; already added to all times */
	bool has_device;     /* at least one kernel or device memory operation */
	bool has_stacks;     /* at least one KIND_PYTHON event */
	bool sampled;	     /* stacks come from samples: their ends are accurate to one period */
	int64_t sample_ns;   /* that period; 0: unknown */
	uint64_t text_bytes; /* size of the JSON text */
};

struct trace {
	struct strtab strings;
	struct event *events; /* sorted by (start_ns, -dur_ns, file order) */
	size_t event_cnt, event_cap;
	struct event_args *args;
	size_t args_cnt, args_cap;
	struct lane *lanes;
	size_t lane_cnt, lane_cap;
	struct track *tracks;
	size_t track_cnt, track_cap;
	struct trace_meta meta;
	struct trace_drops drops;
	/* Origin of its "ProfilerStep#N", where they are not the job's own; else UNKNOWN. */
	uint8_t iterations_by;
};

/* Returns 0 or -ENOMEM. trace_done() is fine on a zeroed trace. */
_must_check_ int trace_init(struct trace *trace);
void trace_done(struct trace *trace);

static inline const char *event_name(const struct trace *trace, const struct event *event)
{
	return strtab_text(&trace->strings, event->name);
}

static inline int64_t event_end_ns(const struct event *event)
{
	return event->start_ns + event->dur_ns;
}

/* The event's arguments or NULL. Borrowed from the trace. */
static inline const struct event_args *event_args_borrow(const struct trace *trace,
							 const struct event *event)
{
	return event->args > 0 && event->args <= trace->args_cnt ? &trace->args[event->args - 1]
								 : NULL;
}
