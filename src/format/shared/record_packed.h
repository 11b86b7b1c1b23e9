/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes packed fields of a record (format/shared/record_kinds.h): flags, two times,
 * or the extra of a GPU record.
 */
#pragma once

#include "base/base.h"

enum flight_calls { FLIGHT_CALLS_MATMUL, FLIGHT_CALLS_LAUNCH, FLIGHT_CALLS_CNT };

enum flight_how_flag {
	FLIGHT_HOW_PEER = 1,	 /* a send or receive: has a peer, no root */
	FLIGHT_HOW_MANY = 2,	 /* several sends and receives, queued as one */
	FLIGHT_HOW_CAPTURED = 4, /* queued into a graph, or by a replayed graph */
};

#define FLIGHT_US_MAX INT32_MAX

/* Two times in us, clamped to FLIGHT_US_MAX, as one non-negative number. */
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
	FLIGHT_SAMPLE_TRUNCATED = 1, /* deeper than the sampler's limit */
	FLIGHT_SAMPLE_GIL_WAIT = 2,  /* the thread waits for the GIL */
	FLIGHT_SAMPLE_SYSCALL = 4,   /* the thread is in system call (detail >> 4) */
	FLIGHT_SAMPLE_WINDOW = 8,    /* taken at a window's rate */
};

static inline uint16_t flight_sample_call(uint32_t number)
{
	return (uint16_t)(FLIGHT_SAMPLE_SYSCALL | number << 4);
}

#define FLIGHT_GPU_NODE 0x8000u /* extra holds the graph's node number instead of a correlation */

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
