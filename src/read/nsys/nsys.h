/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of Nsight Systems exports (`nsys export --type sqlite`), schemas 2.9 to 3.25.
 * One export holds all processes of a host: each process with work on a device is a
 * worker and has a trace of its own. Missing tables count as empty; columns
 * are found by name, as later schemas only add columns.
 * Source: "SQLite Export Schema Reference" of Nsight Systems; real exports of schema
 * 3.13 and 3.25. Which tables no real file has shown yet: docs/gpu-measurements.md.
 *
 * How tables map to events (times are ns since the session began; its wall clock is added):
 *  - CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _SYNCHRONIZATION: as Kineto writes
 *    them, with the names it gives copies; _GRAPH_TRACE (graphs recorded as a whole):
 *    a kernel "CUDA graph N";
 *  - CUPTI_ACTIVITY_KIND_RUNTIME: calls, without the version in their names, found by
 *    correlationId; OSRT_API: calls outside of these, as the time of the inner ones is
 *    theirs; CUPTI_ACTIVITY_KIND_OVERHEAD, PROFILER_OVERHEAD: overhead;
 *  - NVTX_EVENTS: ranges that torch's emit_nvtx() made of operators are operators, all
 *    others annotations, both without the numbers that it adds to their names; ranges
 *    that are iterations by their name (or, where none are, what repeats in the kernels)
 *    become "ProfilerStep#N", which is what summarize looks for; ranges
 *    of NCCL give communicator, bytes and kind to the kernels that they launch, and the
 *    rank in the largest communicator, else MPI_RANKS, is the worker's;
 *  - COMPOSITE_EVENTS with SAMPLING_CALLCHAINS: frames in files "*.py", as sampled stacks;
 *  - SCHED_EVENTS: the share of CPU time that each thread had, by 10 ms;
 *  - GPU_METRICS, or GENERIC_EVENTS before it: tracks of the devices that the worker
 *    uses, for the metrics that are the resource of something; parts of one resource
 *    (reads and writes; requests and responses) are added up;
 *  - NET_NIC_METRIC: bytes of each card under its own name, as they are: no peak is known.
 *
 * Fatal, with one line "<file>: table T: expected X, found Y": a file that is not a
 * database or not an export, a damaged one, a missing mandatory column, and the limits below.
 * Repaired or dropped, and counted in trace.drops: as in kineto.h.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "model/event.h"
#include "read/reader.h"

#define NSYS_SUFFIX ".sqlite"

struct nsys_options {
	uint64_t max_memory_bytes; /* of the trace made; 0: 8 GiB */
};

/* A process that worked on a device; of an export without device activity, one with ranges. */
struct nsys_worker {
	int64_t process; /* globalPid; 0: the export has no process ids */
	int64_t pid;	 /* in the process's own namespace; -1: unknown */
	int64_t device;	 /* its lowest CUDA ordinal; -1 */
	bool shares;	 /* another worker has the same ordinal: ordinals are per process */
};

typedef VEC(struct nsys_worker) nsys_worker_vec;

/*
 * The workers of the export in path, by device, then pid: at least one. Returns 0, or
 * -errno with a line in err (may be NULL): that of open(), -EINVAL (no export, no worker),
 * -EBADMSG (damaged), -EFBIG, -ENOMEM. Free ret with vec_done() on success. One pass over
 * the device tables.
 */
_must_check_ int nsys_workers(const char *path, nsys_worker_vec *ret, struct err *err);

/*
 * Reads the trace of the worker with this pid; pid < 0: the only worker. source: the
 * name in messages and of the trace; NULL: path. opt may be NULL. Returns 0 or -errno as
 * above, -ENOENT (no such worker), -E2BIG (several, and none is named). *ret is written on
 * success only; give it to trace_done() then.
 */
_must_check_ int nsys_read(const char *path, const char *source, int64_t pid,
			   const struct nsys_options *opt, struct trace *ret, struct err *err);

/* The same from a database in memory: calls take() with each worker's trace, then frees it. */
typedef void nsys_take_fn(void *to, const struct trace *trace);
_must_check_ int nsys_read_memory(const void *data, size_t len, const char *name,
				  const struct nsys_options *opt, nsys_take_fn *take, void *to,
				  struct err *err);

/* For the rows in reader.c. nsys_list_workers(): the pids of nsys_workers(). */
_must_check_ int nsys_read_input(const struct reader_input *input, struct trace *ret,
				 struct err *err);
_must_check_ int nsys_list_workers(const char *file, reader_worker_vec *ret);

/* "*.nsys-rep", "*.qdrep": a report, which must be exported first. Always -EINVAL. */
bool nsys_is_report(const char *path);
_must_check_ int nsys_refuse_report(const struct reader_input *input, struct trace *ret,
				    struct err *err);
