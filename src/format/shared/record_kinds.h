/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of records in the flight recorder (format/shared/recorder.h), beside the marks
 * (format/shared/block.h), and the meaning of their fields. Strings, frames and nodes are indices
 * in the recorder's tables.
 */
#pragma once

#include "base/base.h"

/* Append-only. */
enum flight_kind {
	/* Ring of the sampler. */
	FLIGHT_SAMPLE = 32, /* one sample of one thread. time_ns; value: CPU ns of the thread since
			     * its last sample (-1 unknown); extra: tid << 32 | node; detail: enum
			     * flight_sample_flag, syscall number << 4 */
	FLIGHT_CPU,	 /* training thread, cumulative: value CPU ns, extra run-queue delay ns */
	FLIGHT_FAULTS,	 /* likewise: value minor faults, extra major faults */
	FLIGHT_SWITCHES, /* likewise: value voluntary switches, extra involuntary ones */
	FLIGHT_GIL,	 /* holder of the GIL at time_ns: value tid; 0: free */

	/* Ring of a lane. time_ns: start; value: duration. Written at its end. */
	FLIGHT_OPERATOR,	 /* extra: string; detail: input elements (model/elements.h) */
	FLIGHT_ANNOTATION,	 /* user scope (record_function); extra: string */
	FLIGHT_COLLECTIVE,	 /* extra: string. The next two records belong to it: */
	FLIGHT_COLLECTIVE_ARGS,	 /* value: bytes (-1 unknown), extra: sequence number (-1);
				  * detail: the group's first rank in the job */
	FLIGHT_COLLECTIVE_GROUP, /* value: group size << 32 | string of the group's name, extra:
				  * string of the collective ("allreduce"); 0 unknown; detail:
				  * distance of its ranks in the job; 0: the first rank is unknown,
				  * too */
	FLIGHT_PYTHON,		 /* exact: one call; extra: frame */
	FLIGHT_C_CALL,		 /* exact: one call of a C function; extra: string */

	/*
	 * GPU queues and the calls that feed them, in the lane of the thread that collects them.
	 * time_ns: start; value: duration; detail: index in gpu_lanes, with FLIGHT_GPU_NODE for
	 * kernels of a graph without their launch; extra: see flight_gpu_extra(), with the size
	 * (model/elements.h) in:
	 */
	FLIGHT_GPU_KERNEL,   /* threads launched */
	FLIGHT_GPU_MEMOP,    /* bytes copied or set */
	FLIGHT_GPU_SYNC,     /* a thread's wait for the GPU, recorded on the queue waited for */
	FLIGHT_GPU_API,	     /* a call of the GPU's runtime or driver, on its thread's lane */
	FLIGHT_GPU_OVERHEAD, /* the tracer's own work */

	/*
	 * A collective recorded by NCCL is a FLIGHT_COLLECTIVE whose GROUP is followed by this
	 * record. value: string of the data type << 32 | string of the algorithm; extra: string of
	 * the protocol << 32 | root or peer, or the number of calls combined in it; detail: enum
	 * flight_how_flag, channels << 8. It ends when queued, not when done.
	 */
	FLIGHT_COLLECTIVE_HOW,

	/*
	 * The work of NCCL's network threads for a collective, over all its channels. time_ns:
	 * start; value: duration; extra: string; detail: network operations. After it follow an
	 * ARGS (bytes that crossed the network), a GROUP and, if transfers were traced step by
	 * step, SEND and RECV: sums over all steps in us, see flight_us_pair().
	 */
	FLIGHT_NETWORK,
	FLIGHT_NETWORK_SEND, /* value: waits for the GPU's data, for the peer to be ready; extra:
			      * for the wire, 0 */
	FLIGHT_NETWORK_RECV, /* value: waits for the peer's data or the wire, for the flush into the
			      * GPU's memory; extra: for the GPU to read it, 0 */

	/*
	 * One of many calls of a GPU library, timed between two events of its queue. time_ns: when
	 * it was called; value: ns on the GPU; extra: string (function, kernel). For a matrix
	 * multiplication SHAPE or GROUPS follows.
	 */
	FLIGHT_TIMED,
	FLIGHT_TIMED_SHAPE, /* value: m << 32 | n; extra: k << 32 | matrices; detail: CUDA's type
			     * number */
	FLIGHT_CALLS,	    /* all such calls since the worker began: value: their number; extra:
			     * MFLOP; detail: enum flight_calls */

	/*
	 * A collective's time in the GPU's queue, including the wait for its peers, timed the same
	 * way. ARGS, GROUP and HOW follow, as after NCCL's FLIGHT_COLLECTIVE; detail: how many ran
	 * as one kernel, of which this is the first; bytes are the sum of all, -1 if they differ in
	 * kind.
	 */
	FLIGHT_COLLECTIVE_DONE,

	FLIGHT_TIMED_GROUPS, /* of matrices, each group with its own shape: value: FLOP of all;
			      * extra: groups << 32 | matrices; detail: as in SHAPE */

	/*
	 * Ring of the sampler: one sample of the main thread of a child, taken while the worker
	 * waited for its loader, of a data-loading child, or was in a system call, of another one.
	 * extra: the child's pid << 32 | node; detail: as of SAMPLE; value: 0.
	 */
	FLIGHT_CHILD,
	FLIGHT_KIND_END
};

/* Whether a record of a lane belongs to the record before it: its value is not a duration. */
static inline bool flight_kind_is_detail(uint16_t kind)
{
	return kind == FLIGHT_COLLECTIVE_ARGS || kind == FLIGHT_COLLECTIVE_GROUP ||
	       kind == FLIGHT_COLLECTIVE_HOW || kind == FLIGHT_NETWORK_SEND ||
	       kind == FLIGHT_NETWORK_RECV || kind == FLIGHT_TIMED_SHAPE || kind == FLIGHT_CALLS ||
	       kind == FLIGHT_TIMED_GROUPS;
}
