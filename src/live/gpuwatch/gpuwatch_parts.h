/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of gpuwatch, shared by its two files: gpuwatch.c (the thread) and
 * gpuwatch_take.c (copies samples into sidecars and /metrics).
 */
#pragma once

#include "live/gpuwatch/gpuwatch.h"

#include <pthread.h>
#include <stdatomic.h>

#define FEED_SILENT_NS (1 * NSEC_PER_SEC) /* PM sampling without a piece for so long is off */

/* A process on a GPU. */
struct gpu_user {
	uint32_t pid, device;
};

struct gpu_fault {
	uint32_t device, number;
};

/* The lock guards all members but setup and hw; only the thread uses hw. */
struct gpuwatch {
	struct gpuwatch_setup setup; /* its strings are the two below */
	char program[4096], dir[4096];
	struct gpuhw hw;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop, window, ended, opened;
	bool abandoned;	     /* gpuwatch_stop() has given up: the thread frees the struct */
	int64_t expected_ns; /* until then sample as in a window */
	char why[GPUHW_WHY];
	struct gpuhw_device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
	struct gpu_user users[GPUWATCH_USERS_MAX];
	size_t user_cnt;
	struct gpu_fault faults[GPUWATCH_FAULTS_MAX];
	_Atomic uint32_t fault_cnt;	 /* written under the lock, read without it */
	struct sidecar_gpu_sample *ring; /* of ring_cnt; `gpu` is the driver's number */
	size_t ring_cnt;
	uint64_t pushed;
	struct gpuhw_values latest[GPUHW_DEVICES_MAX];

	struct gpufeed feed; /* only used by the thread; the lock guards the rest of PM sampling */
	uint32_t samplers, crashed, hung;
	/* metrics that PM sampling provides: other sources' are dropped */
	uint64_t fed[GPUHW_DEVICES_MAX];
	int64_t fed_ns;				     /* time of the latest piece */
	char feed_why[GPUHW_DEVICES_MAX][GPUHW_WHY]; /* why PM sampling provides none, or fewer */
};

static inline bool gpuwatch_has_feed(const struct gpuwatch *watch)
{
	return watch->setup.feed.shared || watch->setup.feed.program != NULL;
}

/* From one slow look to the next, in or outside of a window, after one that cost so much CPU time. */
int64_t gpuwatch_slow_gap_ns(const struct gpuwatch *watch, bool window, int64_t cost_ns);
