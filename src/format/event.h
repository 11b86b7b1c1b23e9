/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event model: what every collector and reader produces and what summarize
 * consumes. One `struct trace` is one profiled window of one worker.
 *
 * Times are int64_t nanoseconds on one clock per trace (CLOCK_MONOTONIC live;
 * from files absolute ns, computed in integers, never through a double).
 * Source: PerfTracker section 4.2 for the classes; Kineto output_json.cpp for the kinds.
 */
#pragma once

#include "base/base.h"
#include "base/strtab.h"

#include <limits.h>

#define EVENT_NONE UINT32_MAX
#define RANK_UNKNOWN (-1)

/* Priority on the critical path: a higher value hides a lower one. */
enum event_class {
	CLASS_IDLE,    /* nothing of the worker ran */
	CLASS_HOST,    /* Python, operators that only launch, runtime calls */
	CLASS_COMM,    /* collectives, send and receive */
	CLASS_MEMORY,  /* copies, sets, allocations on the device path */
	CLASS_COMPUTE, /* kernels; without a device: leaf operators that compute */
	CLASS_CNT
};

/* What the writer of the trace said an event is. Class is derived from it. */
enum event_kind {
	KIND_PYTHON,	     /* python_function: parent is the calling frame */
	KIND_OPERATOR,	     /* cpu_op, Operator */
	KIND_ANNOTATION,     /* user_annotation on a thread: context, not an execution */
	KIND_RUNTIME,	     /* cuda_runtime, cuda_driver, hip*, Runtime */
	KIND_KERNEL,	     /* kernel, Kernel: on a stream */
	KIND_GPU_MEMOP,	     /* gpu_memcpy, gpu_memset, Memcpy, Memset: on a stream */
	KIND_GPU_ANNOTATION, /* gpu_user_annotation: a copy of an annotation, no execution */
	KIND_SYNC,	     /* cuda_sync: a wait drawn on a stream, no execution */
	KIND_OVERHEAD,	     /* the profiler's own work */
	KIND_GC,	     /* garbage collection, recorded by the agent */
	KIND_OTHER,	     /* unknown category: kept, never an execution */
	KIND_CNT
};

/* One interval. 32 bytes: a window has millions of them. */
struct event {
	int64_t start_ns;
	int64_t dur_ns;	 /* >= 0 */
	uint32_t name;	 /* id in trace.strings, as the writer spelt it */
	uint32_t parent; /* KIND_PYTHON: index of the calling frame's event, possibly on another
			  * lane. KIND_KERNEL, KIND_GPU_MEMOP: index of the launching runtime
			  * event (by correlation). EVENT_NONE when there is none. */
	uint32_t args;	 /* index + 1 in trace.args; 0: none */
	uint16_t lane;	 /* index in trace.lanes */
	uint8_t kind;	 /* enum event_kind */
	uint8_t reserved;
};
_Static_assert(sizeof(struct event) == 32, "events are counted in millions");

/* What some events carry beside their interval. Absent numbers are -1. */
struct event_args {
	int64_t bytes;	  /* payload of a copy or collective on this rank */
	int64_t elements; /* operators: input elements over all tensors; kernels: threads launched */
	int64_t seq;	  /* collective: sequence number in its group */
	uint32_t group;	  /* collective: string id of the group's name; 0: unknown */
	uint32_t group_ranks; /* collective: string id of "[0, 1]"; 0: unknown */
	uint32_t collective;  /* collective: string id of "allreduce"...; 0: unknown */
	int32_t group_size;
	int64_t external_id; /* "External id" of operators and kernels */
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

/* Resources whose utilisation is sampled: id, text name, what 1.0 means. Ids are append-only. */
#define RESOURCE_LIST(X)                                                                           \
	X(SM_ACTIVE, "sm_active", "GPU: share of cycles with a resident warp")                     \
	X(DRAM, "dram", "GPU memory: share of peak bandwidth")                                     \
	X(NVLINK_TX, "nvlink_tx", "NVLink transmit: share of peak")                                \
	X(PCIE_TX, "pcie_tx", "PCIe transmit: share of peak")                                      \
	X(NIC_TX, "nic_tx", "network transmit: share of peak")                                     \
	X(CPU_THREAD, "cpu_thread", "one thread: CPU time / wall time")                            \
	X(CPU_PROCESS, "cpu_process", "one process: CPU time / (wall time * cores it may use)")    \
	X(RUN_DELAY, "run_delay", "one thread: share of wall time runnable but waiting for a CPU") \
	X(OTHER, "other", "a counter of unknown meaning")                                          \
	X(SOCKET_TX, "socket_tx",                                                                  \
	  "TCP transmit of one process: share of the highest rate seen in the window")

enum resource {
#define X(id, text, help) RESOURCE_##id,
	RESOURCE_LIST(X)
#undef X
		RESOURCE_CNT
};

/* One sample: utilisation over the period that ends at time_ns. */
struct sample {
	int64_t time_ns;
	double value; /* 0..1 for known resources, raw for RESOURCE_OTHER */
};

struct track {
	uint32_t name;		/* string id, as the writer spelt it */
	uint8_t resource;	/* enum resource */
	int64_t device;		/* GPU index or -1 */
	int64_t tid;		/* thread for RESOURCE_CPU_THREAD and RUN_DELAY, else -1 */
	struct sample *samples; /* sorted by time */
	size_t cnt, cap;
};

/* Everything that was left out or mended while reading; shown in the report. X(field, what) */
#define TRACE_DROP_LIST(X)                                                                    \
	X(unknown_phase, "events of an unknown phase")                                        \
	X(unknown_category, "events of an unknown category")                                  \
	X(missing_dur, "complete events without a duration")                                  \
	X(negative_dur, "negative durations set to 0")                                        \
	X(unmatched_begin, "begin events without an end")                                     \
	X(unmatched_end, "end events without a begin")                                        \
	X(bad_event, "events without a usable time or name")                                  \
	X(bad_value, "values out of range or of a wrong type")                                \
	X(bad_utf8, "names with invalid UTF-8, mended")                                       \
	X(unsupported_overlap, "events dropped for a stated limit")                           \
	X(no_interval, "instants, flows and objects: events without an interval, never kept") \
	X(flight_lost, "records lost on the way out of the worker's rings")                   \
	X(flight_invalid, "records of a worker that made no sense")                           \
	X(flight_late, "samples of stacks that came late")                                    \
	X(flight_unreadable, "samples of stacks that could not be read")                      \
	X(flight_tables, "names, stacks or threads beyond the recorder's tables")

struct trace_drops {
#define X(field, what) uint64_t field;
	TRACE_DROP_LIST(X)
#undef X
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
	bool sampled;	     /* those come from samples: their ends are known to a period */
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

const char *event_class_name(enum event_class class);
const char *event_kind_name(enum event_kind kind);
const char *resource_name(enum resource resource);
