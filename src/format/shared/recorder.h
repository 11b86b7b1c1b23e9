/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: everything a worker records about itself, in one sealed memory file shared
 * with the daemon of its host. It outlives the worker while the daemon has it mapped.
 *
 *	always  marks, iteration accounts, Python stacks at 10 Hz, collectives
 *	window  operators, exact calls and the work of GPUs, in the second half of
 *		the file, whose pages exist only while a window is open
 *
 * One thread writes each ring (ring.h) of records (record_kinds.h). Tables (strings, frames, nodes)
 * only grow: entries below their published count never change, except in gpu_lanes: when it is
 * full, a window's new lanes replace lanes that are not in the window. Readers do not trust the
 * contents: an index is compared with the table's size before it is used.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "format/shared/block.h"
#include "format/shared/record_kinds.h"
#include "format/shared/record_packed.h"
#include "format/shared/record_sources.h"

#define FLIGHT_STRING_CNT 16384u
#define FLIGHT_TEXT_BYTES (1u << 20)
#define FLIGHT_FRAME_CNT 16384u
#define FLIGHT_NODE_CNT 65536u
#define FLIGHT_SAMPLE_CNT 32768u /* ring of the sampler */
#define FLIGHT_LANE_CNT 32u	 /* threads with rings of their own */
#define FLIGHT_LANE_RECORD_CNT 2048u
#define FLIGHT_WINDOW_RECORD_CNT 32768u /* of a lane, while a window is open */
#define FLIGHT_STRING_MAX 512u		/* bytes of one string */
#define FLIGHT_GPU_LANE_CNT 1024u

#define FLIGHT_ALWAYS_MAX (8u << 20)
#define FLIGHT_TOTAL_MAX (64u << 20)

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
	uint32_t parent; /* always less than the node's own index */
	uint32_t frame;
};

/*
 * The origin of GPU work: one of the GPU's queues (a stream), or the calling thread. Work on a
 * queue and the call that launched it share one correlation number.
 */
#define FLIGHT_GPU_THREAD (-1)
struct flight_gpu_lane {
	int32_t device; /* index of the GPU; FLIGHT_GPU_THREAD */
	uint32_t id;	/* of the queue; thread id */
};

_Static_assert(FLIGHT_STRING_CNT <= 1u << 16, "flight_gpu_extra() has 16 bits for a string");

/* The thread that writes a lane; tid is stored with release, last. */
struct flight_lane {
	_Atomic uint32_t tid; /* 0: free */
	uint32_t reserved;
	_Atomic uint64_t head, window_head;
	char name[16]; /* comm when the thread got the lane */
};

struct flight {
	struct worker_block block; /* marks, the order */

	uint32_t layout_bytes; /* sizeof(struct flight): must be equal on both sides */
	int32_t rank, world_size;
	uint32_t pid;
	_Atomic uint32_t training_tid;
	_Atomic uint32_t window_open; /* the order's id (low bits) while a window is open */
	int64_t mono_ns, wall_ns;     /* the same moment on both clocks */
	struct flight_source_status sources[FLIGHT_SOURCE_CNT];
	struct flight_drops drops;

	/* Tables: count stored with release after the entry. */
	_Atomic uint32_t string_cnt, text_len, frame_cnt, node_cnt, lane_cnt, gpu_lane_cnt;
	_Atomic uint32_t gpu_name; /* string: the GPU's name; 0: unknown */
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
