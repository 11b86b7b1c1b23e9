/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the timeline share: slices and the tracks they lie on; the writer
 * of trace events is in timeline_writer.h. Not for other files.
 */
#pragma once

#include "format/matmul.h"
#include "report/timeline_writer.h"

/* Rows of a track: slices that overlap and don't nest lie one below the other. */
#define ROW_MAX 16u

enum slice_kind {
	SLICE_ITERATION, /* number: which one; what: 1 when counted from the oldest mark left */
	SLICE_LOADER,
	SLICE_OPTIMIZER, /* number: which of them */
	SLICE_GC,	 /* number: generation */
	SLICE_FRAME,	 /* what: frame */
	SLICE_SYSCALL,	 /* number: of the system call */
	SLICE_GIL_WAIT,	 /* number: the thread that had it, 0 unknown */
	SLICE_TRUNCATED, /* stands for the frames outside of those that were looked at */
	SLICE_OPERATOR,	 /* what: string; so for the three below */
	SLICE_ANNOTATION,
	SLICE_C_CALL,
	SLICE_COLLECTIVE, /* number: index of the rank's collective */
	SLICE_NCCL,	  /* number: index of what NCCL told; so for the next */
	SLICE_NETWORK,
	SLICE_NCCL_TIMED,
	SLICE_GPU,   /* what: string, as the linker writes names; so for the next */
	SLICE_TIMED, /* number: index of what was timed */
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

/* A call of NCCL as itself told it, its time on the GPU, or its work on the network for one. */
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

typedef VEC(struct nccl_slice) nccl_slice_vec;
typedef VEC(struct timed_slice) timed_slice_vec;
typedef VEC(struct comm) comm_vec;
typedef VEC(uint32_t) tid_vec;

struct rank_view {
	const struct flightlog *log;
	comm_vec comms;
	nccl_slice_vec nccl;
	timed_slice_vec timed;
	struct align_event *events;   /* of comms, in their order */
	int64_t first_ns, last_ns;    /* of its records, on its clock */
	int64_t from_ns;	      /* what ended before is left out */
	struct timeline_rank *result; /* the clock; counts */
};

/* Each appends the slices of one track. Returns 0 or -ENOMEM. */
_must_check_ int timeline_marks(const struct rank_view *view, slice_vec *ret);
_must_check_ int timeline_samples(const struct rank_view *view, uint32_t tid, slice_vec *ret);
_must_check_ int timeline_lane(const struct flightlog_lane *lane, slice_vec *ret);
_must_check_ int timeline_comms(const struct rank_view *view, slice_vec *ret);
_must_check_ int timeline_nccl(const struct rank_view *view, enum slice_kind kind, slice_vec *ret);
_must_check_ int timeline_gpu(const struct flightlog *log, uint32_t gpu_lane, slice_vec *ret);
_must_check_ int timeline_timed(const struct rank_view *view, slice_vec *ret);

/* The sampled threads, 64 at most: the one that trains first, others by id. */
_must_check_ int timeline_threads(const struct flightlog *log, tid_vec *ret);

/* Collects the collectives of view->log by start, and what align.h needs of them. */
_must_check_ int timeline_collect_comms(struct rank_view *view);

/* The same of what NCCL told itself; those are not among the collectives. */
_must_check_ int timeline_collect_nccl(struct rank_view *view);
bool timeline_is_nccl(const struct ring_record *records, size_t cnt);

/* Collects the calls that were timed. */
_must_check_ int timeline_collect_timed(struct rank_view *view);

/* records[cnt]: what begins with a collective's name or a FLIGHT_NETWORK, and what is behind it. */
struct comm timeline_read_comm(const struct ring_record *records, size_t cnt);

/*
 * Sets the turn of each collective among its members, by their starts. Collectives
 * that ended before from_ns have none. instance_cnt: as align_match() says.
 */
_must_check_ int timeline_take_turns(struct rank_view *views, size_t cnt, uint32_t instance_cnt);

/* Sorts slices and writes them, each row properly nested, outer ones first. */
_must_check_ int timeline_put(struct place *to, slice_vec *slices);

/* What is special about one of NCCL's slices, or of a call that was timed, as arguments. */
void timeline_put_nccl(struct place *to, const struct nccl_slice *nccl, bool *first);
void timeline_put_timed(struct place *to, const struct timed_slice *timed, bool *first);
