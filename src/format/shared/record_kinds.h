/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of records in the flight recorder (format/flight.h), beside the marks
 * (format/block.h), and what the fields of each mean. Strings, frames and nodes are
 * indices in the recorder's tables.
 */
#pragma once

#include "base/base.h"

/* Append-only. */
enum flight_kind {
	/* Ring of the sampler. */
	FLIGHT_SAMPLE = 32, /* one look at one thread. time_ns; value: CPU ns the thread used since
			     * its last sample (-1 unknown); extra: tid << 32 | node;
			     * detail: enum flight_sample_flag, syscall number << 4 */
	FLIGHT_CPU,	 /* training thread, cumulative: value CPU ns, extra run-queue delay ns */
	FLIGHT_FAULTS,	 /* likewise: value minor faults, extra major faults */
	FLIGHT_SWITCHES, /* likewise: value voluntary switches, extra involuntary ones */
	FLIGHT_GIL,	 /* who held the GIL at time_ns: value tid; 0 nobody */

	/* Ring of a lane. time_ns: start; value: duration. Written at its end. */
	FLIGHT_OPERATOR,	 /* extra: string; detail: input elements (format/elements.h) */
	FLIGHT_ANNOTATION,	 /* user scope (record_function); extra: string */
	FLIGHT_COLLECTIVE,	 /* extra: string. The two records behind it belong to it: */
	FLIGHT_COLLECTIVE_ARGS,	 /* value: bytes (-1 unknown), extra: sequence number (-1);
				  * detail: the group's first rank in the job */
	FLIGHT_COLLECTIVE_GROUP, /* value: group size << 32 | string of the group's name,
				  * extra: string of the collective ("allreduce"); 0 unknown;
				  * detail: distance of its ranks in the job; 0: the first is
				  * not known either */
	FLIGHT_PYTHON,		 /* exact: one call; extra: frame */
	FLIGHT_C_CALL,		 /* exact: one call of a C function; extra: string */

	/*
	 * Of a GPU's queues and the calls that feed them, in the lane of the thread that
	 * collects them. time_ns: start; value: duration; detail: index in gpu_lanes, with
	 * FLIGHT_GPU_NODE for kernels of a graph that do not know their launch; extra: see
	 * flight_gpu_extra(). size (format/elements.h) is of:
	 */
	FLIGHT_GPU_KERNEL,   /* threads launched */
	FLIGHT_GPU_MEMOP,    /* bytes copied or set */
	FLIGHT_GPU_SYNC,     /* a thread's wait for the GPU, drawn on the queue waited for */
	FLIGHT_GPU_API,	     /* a call of the GPU's runtime or driver, on its thread's lane */
	FLIGHT_GPU_OVERHEAD, /* the tracer's own work */

	/*
	 * A collective as NCCL itself tells it is a FLIGHT_COLLECTIVE whose GROUP this follows;
	 * value: string of the data type << 32 | string of the algorithm; extra: string of the
	 * protocol << 32 | root or peer, or how many calls it stands for; detail:
	 * enum flight_how_flag, channels << 8. It lasts until it is queued, not until it is done.
	 */
	FLIGHT_COLLECTIVE_HOW,

	/*
	 * What the threads that drive the network did for a collective, over all its channels.
	 * time_ns: start; value: duration; extra: string; detail: network operations. Behind it
	 * an ARGS (bytes that crossed the network), a GROUP and, when transfers were followed
	 * step by step, both of the last: sums over all steps in us, see flight_us_pair().
	 */
	FLIGHT_NETWORK,
	FLIGHT_NETWORK_SEND, /* value: waited for the GPU's data, for the peer to be ready;
			      * extra: for the wire, 0 */
	FLIGHT_NETWORK_RECV, /* value: waited for the peer's data or the wire, for the flush into
			      * the GPU's memory; extra: for the GPU to take it, 0 */

	/*
	 * One call in many of a GPU's libraries, timed between two events of its queue. time_ns:
	 * when it was called; value: ns on the GPU; extra: string (function, kernel). Of a
	 * matrix multiplication SHAPE follows, or GROUPS.
	 */
	FLIGHT_TIMED,
	FLIGHT_TIMED_SHAPE, /* value: m << 32 | n; extra: k << 32 | matrices; detail: type as
			     * CUDA numbers it */
	FLIGHT_CALLS,	    /* all such calls since the worker began: value: how many; extra:
			     * MFLOP; detail: enum flight_calls */

	/*
	 * A collective's time in the GPU's queue, waiting for its peers included, timed likewise.
	 * ARGS, GROUP and HOW follow, as behind NCCL's FLIGHT_COLLECTIVE; detail: how many ran as
	 * one, of which this is the first; its bytes are those of all, -1 if they differ in kind.
	 */
	FLIGHT_COLLECTIVE_DONE,

	FLIGHT_TIMED_GROUPS, /* of matrices, each group of its own shape: value: FLOP of all;
			      * extra: groups << 32 | matrices; detail: as in SHAPE */
	FLIGHT_KIND_END
};

/* A record of a lane that tells more of the one before it: its value is no duration. */
static inline bool flight_kind_is_detail(uint16_t kind)
{
	return kind == FLIGHT_COLLECTIVE_ARGS || kind == FLIGHT_COLLECTIVE_GROUP ||
	       kind == FLIGHT_COLLECTIVE_HOW || kind == FLIGHT_NETWORK_SEND ||
	       kind == FLIGHT_NETWORK_RECV || kind == FLIGHT_TIMED_SHAPE || kind == FLIGHT_CALLS ||
	       kind == FLIGHT_TIMED_GROUPS;
}
