/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice of the timeline, and the details of slices that are more than a name and an interval:
 * collectives as reported by PyTorch and by NCCL, and calls for which the GPU was timed. Private
 * to the timeline's files.
 */
#pragma once

#include "base/vec.h"
#include "format/flightlog/gpulinks.h"
#include "format/shared/matmul.h"

enum slice_kind {
	SLICE_ITERATION, /* number: which one; what: 1 when counted from the oldest mark left */
	SLICE_LOADER,
	SLICE_OPTIMIZER, /* number: which of them */
	SLICE_GC,	 /* number: generation */
	SLICE_FRAME,	 /* what: frame */
	SLICE_SYSCALL,	 /* number: of the system call */
	SLICE_GIL_WAIT,	 /* number: the thread that had it, 0 unknown */
	SLICE_TRUNCATED, /* replaces the outer frames that were not unwound */
	SLICE_OPERATOR,	 /* what: string; so for the three below */
	SLICE_ANNOTATION,
	SLICE_C_CALL,
	SLICE_COLLECTIVE, /* number: index of the rank's collective */
	SLICE_NCCL,	  /* number: index of the record of NCCL; likewise the next */
	SLICE_NETWORK,
	SLICE_NCCL_TIMED,
	SLICE_GPU,   /* what: string, as the linker writes names; number: index of its record */
	SLICE_TIMED, /* likewise; number: index of what was timed */
};

struct slice {
	int64_t start_ns, end_ns; /* the rank's clock */
	int64_t number;
	int64_t cpu_ns; /* used, as the samples say; -1 unknown */
	uint32_t what;
	uint32_t sample_cnt;
	uint32_t order; /* of slices with one interval the higher one is inside */
	uint8_t kind;	/* enum slice_kind */
	bool open;	/* had not ended when the recorder was read */
};

typedef VEC(struct slice) slice_vec;

/* A collective: three records in one. */
struct comm {
	int64_t start_ns, dur_ns, bytes, seq; /* -1: unknown */
	uint32_t group_size;		      /* 0: unknown */
	uint32_t name, group, what;	      /* strings */
	uint32_t turn, member_cnt;	      /* it was the turn-th to come of so many; 0: alone */
};

/* Time that transfers waited, summed over all that went on at once. */
enum nccl_wait {
	NCCL_WAIT_SEND_GPU, /* for the data */
	NCCL_WAIT_SEND_PEER,
	NCCL_WAIT_SEND_WIRE,
	NCCL_WAIT_RECV_WIRE, /* or for the peer to send */
	NCCL_WAIT_RECV_FLUSH,
	NCCL_WAIT_RECV_GPU, /* to take it */
	NCCL_WAIT_CNT
};

/* A call as NCCL reported it, its time on the GPU, or its work on the network. */
struct nccl_slice {
	struct comm comm;
	enum slice_kind kind;			/* SLICE_NCCL, SLICE_NCCL_TIMED, SLICE_NETWORK */
	uint32_t datatype, algorithm, protocol; /* strings */
	uint32_t channels, call_cnt, op_cnt;
	uint32_t merged_cnt; /* ran as one, of which this is the first */
	int64_t peer;	     /* -1: none */
	bool captured, has_waits;
	uint32_t waits_us[NCCL_WAIT_CNT];
};

/* A call of a GPU's library: when it was made, how long the GPU took. */
struct timed_slice {
	int64_t start_ns, dur_ns;
	uint32_t name; /* string */
	bool is_matmul;
	struct matmul matmul;
};

/* What windows saw of GPUs, and where in the picture it is. Arrays are by links.records. */
struct gpu_view {
	struct gpulinks links;
	size_t *callers; /* index + 1 of the call that launched it; 0: unknown */
	uint32_t *tids;	 /* the row in which it was drawn; 0: it was not */
};

typedef VEC(struct nccl_slice) nccl_slice_vec;
typedef VEC(struct timed_slice) timed_slice_vec;
typedef VEC(struct comm) comm_vec;
