/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of gpuwatch, shared by its two files: gpuwatch.c (the thread) and
 * gpuwatch_take.c (what others take of what it saw).
 */
#pragma once

#include "live/gpuwatch/gpuwatch.h"

#include <pthread.h>
#include <stdatomic.h>

#define FEED_SILENT_NS (1 * NSEC_PER_SEC) /* then PM sampling gives nothing */

/* A process on a GPU. */
struct gpu_user {
	uint32_t pid, device;
};

struct gpu_fault {
	uint32_t device, number;
};

/* Everything but setup and hw is behind the lock; hw belongs to the thread. */
struct gpuwatch {
	struct gpuwatch_setup setup; /* its strings are the two below */
	char program[4096], dir[4096];
	struct gpuhw hw;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop, window, ended, opened;
	bool abandoned;	     /* nobody waits any more: the thread frees all */
	int64_t expected_ns; /* until then as if a window were open */
	char why[GPUHW_WHY];
	struct gpuhw_device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
	struct gpu_user users[GPUWATCH_USERS_MAX];
	size_t user_cnt;
	struct gpu_fault faults[GPUWATCH_FAULTS_MAX];
	_Atomic uint32_t fault_cnt;	 /* written behind the lock, looked at without */
	struct sidecar_gpu_sample *ring; /* of ring_cnt; `gpu` is the driver's number */
	size_t ring_cnt;
	uint64_t pushed;
	struct gpuhw_values latest[GPUHW_DEVICES_MAX];

	struct gpufeed feed; /* the thread's alone; the rest of PM sampling is behind the lock */
	uint32_t samplers, crashed, hung;
	uint64_t fed[GPUHW_DEVICES_MAX]; /* metrics that it gives: others' are left out */
	int64_t fed_ns;			 /* when something came last */
	char feed_why[GPUHW_DEVICES_MAX][GPUHW_WHY]; /* why it gives nothing, or less */
};

static inline bool gpuwatch_has_feed(const struct gpuwatch *watch)
{
	return watch->setup.feed.shared || watch->setup.feed.program != NULL;
}
