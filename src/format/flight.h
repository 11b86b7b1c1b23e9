/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: all that a worker records about itself, in one sealed
 * memory file that it shares with the daemon of its host. It outlives the
 * worker as long as the daemon has it mapped.
 *
 *	always  marks, iteration accounts, Python stacks at 10 Hz, collectives
 *	window  operators, exact calls and the work of GPUs, in the second half of
 *		the file, whose pages exist only while a window is open
 *
 * One thread writes each ring (format/ring.h). Tables (strings, frames, nodes)
 * only grow: entries below their published count never change, but for gpu_lanes: when it
 * is full, a window's new lanes take the places of those that are not in it. Readers trust
 * nothing: an index is compared with the table's size before it is used.
 * Source: facts on collection, sections 2, 8 and 9; design.md sections 4 and 8.
 */
#pragma once

#include "format/message.h"

#define FLIGHT_STRING_CNT 16384u
#define FLIGHT_TEXT_BYTES (1u << 20)
#define FLIGHT_FRAME_CNT 16384u
#define FLIGHT_NODE_CNT 65536u
#define FLIGHT_SAMPLE_CNT 32768u /* ring of the sampler */
#define FLIGHT_LANE_CNT 32u	 /* threads of their own rings */
#define FLIGHT_LANE_RECORD_CNT 2048u
#define FLIGHT_WINDOW_RECORD_CNT 32768u /* of a lane, while a window is open */
#define FLIGHT_STRING_MAX 512u		/* bytes of one string */
#define FLIGHT_GPU_LANE_CNT 1024u

#define FLIGHT_ALWAYS_MAX (8u << 20)
#define FLIGHT_TOTAL_MAX (64u << 20)

/*
 * Kinds of records, beside the marks. Strings, frames and nodes are indices in
 * the tables. Append-only.
 */
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
	FLIGHT_COLLECTIVE_ARGS,	 /* value: bytes (-1 unknown), extra: sequence number (-1) */
	FLIGHT_COLLECTIVE_GROUP, /* value: group size << 32 | string of the group's name,
				  * extra: string of the collective ("allreduce"); 0 unknown */
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

enum flight_calls { FLIGHT_CALLS_MATMUL, FLIGHT_CALLS_LAUNCH, FLIGHT_CALLS_CNT };

enum flight_how_flag {
	FLIGHT_HOW_PEER = 1,	 /* a send or receive: there is a peer, no root */
	FLIGHT_HOW_MANY = 2,	 /* several sends and receives, queued as one */
	FLIGHT_HOW_CAPTURED = 4, /* queued into a graph, or by one that is replayed */
};

#define FLIGHT_US_MAX INT32_MAX

/* Two times in us, cut to FLIGHT_US_MAX, as one number that is not negative. */
static inline int64_t flight_us_pair(uint64_t first_us, uint64_t second_us)
{
	return (int64_t)(MIN(first_us, (uint64_t)FLIGHT_US_MAX) << 32 |
			 MIN(second_us, (uint64_t)FLIGHT_US_MAX));
}

static inline uint32_t flight_us_first(uint64_t pair)
{
	return (uint32_t)(pair >> 32);
}

static inline uint32_t flight_us_second(uint64_t pair)
{
	return (uint32_t)pair;
}

enum flight_sample_flag {
	FLIGHT_SAMPLE_TRUNCATED = 1, /* deeper than the sampler looks */
	FLIGHT_SAMPLE_GIL_WAIT = 2,  /* the thread waits for the GIL */
	FLIGHT_SAMPLE_SYSCALL = 4,   /* the thread is in system call (detail >> 4) */
	FLIGHT_SAMPLE_WINDOW = 8,    /* taken at the rate of a window */
};

/* UTF-8, not terminated. String 0 is empty and means "none". */
struct flight_string {
	uint32_t off, len; /* in text */
};

/* One Python function. */
struct flight_frame {
	uint32_t file, name; /* strings */
	uint32_t first_line;
	uint32_t reserved;
};

/* One call stack: the node of a trie. Node 0 is the root, without a frame. */
struct flight_node {
	uint32_t parent; /* always below the node's own index */
	uint32_t frame;
};

/*
 * Where something of a GPU ran: one of its queues (a stream), or the thread that called.
 * What is on a queue and the call that launched it carry one correlation number.
 */
#define FLIGHT_GPU_THREAD (-1)
#define FLIGHT_GPU_NODE 0x8000u /* for the correlation number: which node of the graph it is */
struct flight_gpu_lane {
	int32_t device; /* index of the GPU; FLIGHT_GPU_THREAD */
	uint32_t id;	/* of the queue; thread id */
};

_Static_assert(FLIGHT_STRING_CNT <= 1u << 16, "a string's number fits what a record has left");

static inline uint64_t flight_gpu_extra(uint32_t correlation, uint16_t size, uint32_t string)
{
	return (uint64_t)correlation << 32 | (uint64_t)size << 16 | (string & 0xffff);
}

static inline uint32_t flight_gpu_correlation(uint64_t extra) /* 0: unknown */
{
	return (uint32_t)(extra >> 32);
}

static inline uint16_t flight_gpu_size(uint64_t extra)
{
	return (uint16_t)(extra >> 16);
}

static inline uint32_t flight_gpu_string(uint64_t extra)
{
	return (uint16_t)extra;
}

/* What a worker can record. A source that is absent says why; one that works may remark on it. */
enum flight_source {
	FLIGHT_SOURCE_STACKS,
	FLIGHT_SOURCE_OPERATORS,
	FLIGHT_SOURCE_COLLECTIVES,
	FLIGHT_SOURCE_GIL,
	FLIGHT_SOURCE_SYSCALLS,
	FLIGHT_SOURCE_GC,
	FLIGHT_SOURCE_EXACT, /* of the newest window that asked for it */
	FLIGHT_SOURCE_GPU,   /* of the newest window */
	FLIGHT_SOURCE_CNT
};

enum flight_source_state { FLIGHT_UNTRIED, FLIGHT_WORKS, FLIGHT_ABSENT };

struct flight_source_status {
	_Atomic uint32_t state; /* enum flight_source_state; stored with release after why */
	char why[124];		/* NUL-terminated */
};

/* What could not be recorded. X(field, what) */
#define FLIGHT_DROP_LIST(X)                                             \
	X(strings, "names beyond the table of names")                   \
	X(frames, "Python functions beyond their table")                \
	X(nodes, "call stacks beyond their table")                      \
	X(lanes, "records of threads beyond the table of lanes")        \
	X(unreadable, "samples of stacks that could not be read")       \
	X(late, "samples that came later than twice their period")      \
	X(threads, "threads that were not sampled: there are too many") \
	X(nested, "operators nested deeper than is remembered")         \
	X(calls, "exact calls left out: they were short and many")      \
	X(gpu, "records of the GPU beyond buffers, tables or rings")    \
	X(gpu_untimed, "records of the GPU without times")              \
	X(nccl, "events of NCCL beyond the pool of those under way")    \
	X(timed, "calls of the GPU that were to be timed and were not")

struct flight_drops {
#define X(field, what) _Atomic uint64_t field;
	FLIGHT_DROP_LIST(X)
#undef X
};

/* The thread that writes a lane; tid is stored with release, last. */
struct flight_lane {
	_Atomic uint32_t tid; /* 0: free */
	uint32_t reserved;
	_Atomic uint64_t head, window_head;
	char name[16]; /* comm when the lane was taken */
};

struct flight {
	struct worker_block block; /* marks, the order */

	uint32_t layout_bytes; /* sizeof(struct flight): both sides must agree */
	int32_t rank, world_size;
	uint32_t pid;
	_Atomic uint32_t training_tid;
	_Atomic uint32_t window_open; /* the order's id (low bits) while a window is open */
	int64_t mono_ns, wall_ns;     /* one moment on both clocks */
	struct flight_source_status sources[FLIGHT_SOURCE_CNT];
	struct flight_drops drops;

	/* Tables: count stored with release after the entry. */
	_Atomic uint32_t string_cnt, text_len, frame_cnt, node_cnt, lane_cnt, gpu_lane_cnt;
	_Atomic uint32_t gpu_name; /* string: what the GPU is called; 0: unknown */
	uint32_t reserved;
	struct flight_string strings[FLIGHT_STRING_CNT];
	struct flight_frame frames[FLIGHT_FRAME_CNT];
	struct flight_node nodes[FLIGHT_NODE_CNT];
	struct flight_lane lanes[FLIGHT_LANE_CNT];
	struct flight_gpu_lane gpu_lanes[FLIGHT_GPU_LANE_CNT];
	_Atomic uint64_t sample_head;
	struct ring_record samples[FLIGHT_SAMPLE_CNT];
	struct ring_record records[FLIGHT_LANE_CNT][FLIGHT_LANE_RECORD_CNT];
	char text[FLIGHT_TEXT_BYTES];

	/* Pages exist only while a window is open. */
	_Alignas(4096) struct ring_record window_records[FLIGHT_LANE_CNT][FLIGHT_WINDOW_RECORD_CNT];
};
_Static_assert(offsetof(struct flight, window_records) <= FLIGHT_ALWAYS_MAX, "budget");
_Static_assert(sizeof(struct flight) <= FLIGHT_TOTAL_MAX, "budget");
