/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this host, watched by a thread of their own: a driver in trouble makes a
 * call last for seconds, or for ever, and nothing else may wait for it. Once a second
 * clocks, power and counters; while a window is open what is fast, too. The latest
 * samples lie in a ring, from which a window that ends takes those of its worker's GPUs.
 *
 * In a window the first of these that there is, for each metric and device: PM sampling
 * (gpuwatch_feed.h), 10,000 a second or means of a few of them (collect/host/gpucounters.h); the
 * driver's fast samples, ten a second; its slow ones.
 */
#pragma once

#include "format/sidecar/sidecar.h"
#include "host/gpu/gpuhw.h"
#include "live/gpuwatch/gpuwatch_feed.h"

#define GPUWATCH_SLOW_MS 1000
#define GPUWATCH_FAST_MS 110	     /* GPM refreshes every 100 ms */
#define GPUWATCH_FEED_MS 50	     /* pieces of PM sampling */
#define GPUWATCH_RING_CNT 65536u     /* samples of one device: minutes */
#define GPUWATCH_FEED_CNT (5u << 19) /* of PM sampling, all devices: 30 s or more, 63 MB */
#define GPUWATCH_EXPECT_NS (30 * NSEC_PER_SEC) /* for a window that was ordered */
#define GPUWATCH_USERS_MAX 256u		       /* processes on GPUs that are remembered */
#define GPUWATCH_FAULTS_MAX 16u		       /* not yet asked for; more are dropped */
#define GPUWATCH_STOP_MS 200 /* for a call under way; then the thread is left behind */

struct gpuwatch_setup {
	int (*open)(struct gpuhw *hw, char why[static GPUHW_WHY]); /* gpuhw_open but in tests */
	int slow_ms, fast_ms;
	struct gpufeed_setup feed; /* zeroed: no PM sampling */
	size_t feed_cnt; /* samples of it that are kept, of all devices; 0: GPUWATCH_FEED_CNT */
	bool recover;	 /* first: a DCGM that a dead job of this user's left paused */
};

struct gpuwatch;

/* Starts the thread, which looks for GPUs. NULL: no memory, or no thread: there are no GPUs. */
struct gpuwatch *gpuwatch_start(const struct gpuwatch_setup *setup);

/* Ends it. NULL is fine. Waits at most GPUWATCH_STOP_MS. */
void gpuwatch_stop(struct gpuwatch *watch);

/* A window is open on this host: fast samples are wanted. Ends what gpuwatch_expect() began. */
void gpuwatch_set_window(struct gpuwatch *watch, bool open);

/*
 * A window was ordered and opens soon: whatever takes seconds to start, does, and gives samples
 * for so long. 0: it was canceled. watch may be NULL.
 */
void gpuwatch_expect(struct gpuwatch *watch, int64_t for_ns);

/*
 * The next fault that a driver reported: of which device, its number (NVIDIA: Xid). False
 * when there is none. Cheap when there is none, to be asked often.
 */
bool gpuwatch_next_fault(struct gpuwatch *watch, uint32_t *ret_device, uint32_t *ret_number);

/* Whose GPUs: those that the driver says its process uses, else the one of its local rank. */
struct gpuwatch_worker {
	uint32_t pid;
	int32_t local_rank; /* -1: unknown */
	int64_t since_ns;   /* CLOCK_MONOTONIC: the window's begin */
};

/* What is known of the GPUs, for /metrics. */
struct gpuwatch_state {
	size_t device_cnt;
	struct gpuhw_device devices[GPUHW_DEVICES_MAX];
	struct gpuhw_values values[GPUHW_DEVICES_MAX]; /* the latest of each */
	uint64_t fed[GPUHW_DEVICES_MAX];	       /* metrics that PM sampling gives now */
	uint32_t samplers, crashed, hung;	       /* processes of PM sampling: started, ... */
};

/* watch may be NULL. */
void gpuwatch_state(struct gpuwatch *watch, struct gpuwatch_state *ret);

/*
 * Appends the worker's GPUs and their samples since then to side, or a record that says
 * why there are none. watch may be NULL. Returns 0 or -ENOMEM.
 */
_must_check_ int gpuwatch_take(struct gpuwatch *watch, const struct gpuwatch_worker *worker,
			       struct sidecar *side);
