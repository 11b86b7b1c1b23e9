/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links GPU work to its origin: from a kernel or copy in a flight log to the call that launched it,
 * and from the call to the collective during which its thread made the call.
 *
 * A call and its kernels share one correlation number. Kernels of a graph have the number of their
 * node instead: the kernels of one launch have different nodes, and launches run in order. A
 * repeated node begins the next launch.
 */
#pragma once

#include "format/flightlog/flightlog.h"

/* A call of the runtime or driver that may have launched GPU work. */
struct gpulinks_call {
	uint32_t correlation, tid;
	int64_t start_ns;
	size_t record_idx; /* its record, in gpulinks.records */
};

/* A collective, on the thread that called it. */
struct gpulinks_comm {
	uint32_t tid;
	bool nccl; /* recorded by the NCCL plugin */
	int64_t start_ns, end_ns;
	const struct ring_record *records; /* its record and those after it in its ring */
	size_t cnt;
};

typedef VEC(struct gpulinks_call) gpulinks_call_vec;

struct gpulinks {
	const struct flightlog *log;
	VEC(const struct ring_record *) records; /* of GPUs and their calls, by time */
	VEC(struct gpulinks_comm) comms;	 /* by thread, then time */
	gpulinks_call_vec calls;		 /* all calls, by correlation, then time */
	gpulinks_call_vec launches;		 /* launches of graphs, by time */
	gpulinks_call_vec nccl; /* launches of NCCL's kernels, by thread, then time */

	/* Nodes seen since the last launch of a graph. */
	uint32_t *seen; /* by the low bits of the node number: the run in which it was seen last */
	uint32_t run;
	size_t launch_idx;
};

/*
 * Collects the records that overlap start_ns .. end_ns, of the log's clock; borrows the log.
 * Returns 0 or -ENOMEM; call gpulinks_done() in both cases.
 */
_must_check_ int gpulinks_init(struct gpulinks *links, const struct flightlog *log,
			       int64_t start_ns, int64_t end_ns);
void gpulinks_done(struct gpulinks *links);

/*
 * Index in records of the call that launched record; false: unknown. Call it in the order of time,
 * once per kernel: kernels of graphs are counted.
 */
bool gpulinks_caller(struct gpulinks *links, const struct ring_record *record, size_t *ret);

/*
 * The collective that a call launched; NULL: none. PyTorch's collective, the one that encloses the
 * call, has precedence over NCCL's record of it; *ret_nccl: NCCL's, or NULL. NCCL's record begins
 * after the launch.
 */
const struct gpulinks_comm *gpulinks_comm(const struct gpulinks *links,
					  const struct ring_record *call,
					  const struct gpulinks_comm **ret_nccl);

/* Number of NCCL collectives, starting with first, that the call launched as one kernel. */
size_t gpulinks_nccl_cnt(const struct gpulinks *links, const struct ring_record *call,
			 const struct gpulinks_comm *first);

/* The GPU lane of a record. */
static inline const struct flight_gpu_lane *gpulinks_lane(const struct flightlog *log,
							  const struct ring_record *record)
{
	return &log->gpu_lanes.data[record->detail & ~FLIGHT_GPU_NODE];
}
