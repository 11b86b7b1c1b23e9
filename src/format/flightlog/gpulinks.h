/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who made a GPU do something: from a kernel or copy in a flight log to the call that launched
 * it, and from that to the collective within which its thread made it.
 *
 * A call and what it launched carry one correlation number. Kernels of a graph that don't know
 * their launch know their node: those of one launch are different nodes, and launches run in
 * their order. A node that comes again begins the next one.
 */
#pragma once

#include "format/flightlog/flightlog.h"

/* A call of the runtime or driver that may have launched something. */
struct gpulinks_call {
	uint32_t correlation, tid;
	int64_t start_ns;
	size_t record_idx; /* its record, in gpulinks.records */
};

/* A collective on the thread that called it. */
struct gpulinks_comm {
	uint32_t tid;
	bool nccl; /* as NCCL told it */
	int64_t start_ns, end_ns;
	const struct ring_record *records; /* it and what is behind it in its ring */
	size_t cnt;
};

typedef VEC(struct gpulinks_call) gpulinks_call_vec;

struct gpulinks {
	const struct flightlog *log;
	VEC(const struct ring_record *) records; /* of GPUs and their calls, by time */
	VEC(struct gpulinks_comm) comms;	 /* by thread, then time */
	gpulinks_call_vec calls;		 /* by correlation, then time */
	gpulinks_call_vec launches;		 /* of graphs, by time */
	gpulinks_call_vec nccl;			 /* of NCCL's kernels, by thread, then time */

	/* The nodes since the last launch of a graph. */
	uint32_t *seen; /* by node number's low bits: the run in which it was seen */
	uint32_t run;
	size_t launch_idx;
};

/*
 * Gathers what overlaps start_ns .. end_ns, of the log's clock; borrows the log. Returns 0 or
 * -ENOMEM; gpulinks_done() is for both.
 */
_must_check_ int gpulinks_init(struct gpulinks *links, const struct flightlog *log,
			       int64_t start_ns, int64_t end_ns);
void gpulinks_done(struct gpulinks *links);

/*
 * Index in records of the call that launched record; false: unknown. To be asked in the order
 * of time, once for each kernel: those of graphs are counted.
 */
bool gpulinks_caller(struct gpulinks *links, const struct ring_record *record, size_t *ret);

/*
 * The collective that a call launched; NULL: none. PyTorch's is the one within which it was made,
 * and comes first where NCCL told of it, too; *ret_nccl: NCCL's, or NULL. NCCL tells when the kernel
 * is launched already.
 */
const struct gpulinks_comm *gpulinks_comm(const struct gpulinks *links,
					  const struct ring_record *call,
					  const struct gpulinks_comm **ret_nccl);

/* How many of NCCL's, from the first on, the call launched as one kernel. */
size_t gpulinks_nccl_cnt(const struct gpulinks *links, const struct ring_record *call,
			 const struct gpulinks_comm *first);

/* The lane of a record of a GPU. */
static inline const struct flight_gpu_lane *gpulinks_lane(const struct flightlog *log,
							  const struct ring_record *record)
{
	return &log->gpu_lanes.data[record->detail & ~FLIGHT_GPU_NODE];
}
