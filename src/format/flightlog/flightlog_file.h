/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a flight log's file: a fixed header, then seven consecutive sections without gaps,
 * all little-endian.
 *
 *	strings, frames, nodes, lanes, gpu_lanes
 *			tables; entry 0 of the first three is "none"
 *	records		marks, samples, then per lane always-on and window records
 *	text		the strings' bytes, to the end of the file
 */
#pragma once

#include "format/shared/recorder.h"

#define FLIGHTLOG_MAGIC 0x314c4650u /* "PFL1" */
#define FLIGHTLOG_VERSION 3u
#define FLIGHTLOG_MAX_BYTES (1u << 30)
#define FLIGHTLOG_DROP_MAX 32u

struct flightlog_file_lane {
	uint32_t tid, reserved;
	char name[16];
	uint64_t record_cnt, window_cnt;
};

struct flightlog_file_header {
	uint32_t magic, version;
	int32_t rank, world_size;
	uint32_t pid, training_tid;
	int64_t mono_ns, wall_ns;
	char host[64];
	struct {
		uint32_t state;
		char why[124];
	} sources[FLIGHT_SOURCE_CNT];
	/* In the order of struct flightlog_drops, which is append-only; before: likewise. */
	uint64_t drops[FLIGHTLOG_DROP_MAX], before[FLIGHTLOG_DROP_MAX];
	uint64_t mark_cnt, sample_cnt;
	uint64_t string_cnt, frame_cnt, node_cnt, lane_cnt, record_cnt, text_bytes;
	uint64_t gpu_lane_cnt, gpu_name;
};
_Static_assert(sizeof(struct flight_string) == 8, "on disk");
_Static_assert(sizeof(struct flight_frame) == 16, "on disk");
_Static_assert(sizeof(struct flight_node) == 8, "on disk");
_Static_assert(sizeof(struct flight_gpu_lane) == 8, "on disk");
_Static_assert(sizeof(struct flightlog_file_lane) == 40, "on disk");
_Static_assert(sizeof(struct flightlog_file_header) ==
		       40 + 64 + 128 * FLIGHT_SOURCE_CNT + 16 * FLIGHTLOG_DROP_MAX + 80,
	       "on disk");
