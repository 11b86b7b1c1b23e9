/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the GPUs of this host in a thread of its own: a call of a faulty driver may last
 * seconds or never return, and must not block the daemon. Clocks, power and counters are read
 * once a second, without a window less often if that costs much (4.5 ms of CPU on an H200); while
 * a window is open the fast metrics, too. A ring holds the latest samples; a window that ends
 * copies those of its worker's GPUs.
 *
 * In a window each metric of a device comes from the first available source: PM sampling
 * (gpuwatch_feed.h), 10,000 a second or means of a few of them (host/counters/gpucounters.h); the
 * driver's fast samples, ten a second; its slow ones.
 */
#pragma once

#include "format/sidecar/sidecar.h"
#include "host/gpu/gpuhw.h"
#include "live/gpuwatch/gpuwatch_feed.h"

#define GPUWATCH_SLOW_MS 1000
#define GPUWATCH_SLOW_MOST_MS 10000
#define GPUWATCH_SLOW_COST 0.001     /* of a core, for each device */
#define GPUWATCH_FAST_MS 110	     /* GPM refreshes every 100 ms */
#define GPUWATCH_FEED_MS 50	     /* pieces of PM sampling */
#define GPUWATCH_RING_CNT 65536u     /* samples of one device: minutes */
#define GPUWATCH_FEED_CNT (5u << 19) /* of PM sampling, all devices: 30 s or more, 63 MB */
#define GPUWATCH_EXPECT_NS (30 * NSEC_PER_SEC) /* from an order to the window */
#define GPUWATCH_USERS_MAX 256u		       /* processes on GPUs; more are ignored */
#define GPUWATCH_FAULTS_MAX 16u		       /* not yet read; more are dropped */
#define GPUWATCH_STOP_MS 200 /* waited for a call in progress; then the thread is abandoned */

struct gpuwatch_setup {
	/* gpuhw_open, or a fake in tests. */
	int (*open)(struct gpuhw *hw, char why[static GPUHW_WHY]);
	int slow_ms, fast_ms;
	struct gpufeed_setup feed; /* zeroed: no PM sampling */
	size_t feed_cnt; /* capacity in samples of PM sampling, all devices; 0: GPUWATCH_FEED_CNT */
	bool recover;	 /* first resume a DCGM that a dead job of this user left paused */
};

struct gpuwatch;

/* Starts the thread, which opens the GPUs. Returns NULL without memory or thread: no samples. */
struct gpuwatch *gpuwatch_start(const struct gpuwatch_setup *setup);

/* Ends the thread; waits at most GPUWATCH_STOP_MS. NULL is fine. */
void gpuwatch_stop(struct gpuwatch *watch);

/* Whether a window is open on this host, and fast samples are taken. Ends gpuwatch_expect(). */
void gpuwatch_set_window(struct gpuwatch *watch, bool open);

/*
 * A window was ordered: starts sampling as in a window, for for_ns, since PM sampling takes
 * seconds to start. 0: the order was canceled. watch may be NULL.
 */
void gpuwatch_expect(struct gpuwatch *watch, int64_t for_ns);

/*
 * Returns the next fault that a driver reported: its device and number (NVIDIA: Xid). False:
 * none; then it is cheap and may be called often.
 */
bool gpuwatch_next_fault(struct gpuwatch *watch, uint32_t *ret_device, uint32_t *ret_number);

/* Whether the driver saw the process on the device at the last look. watch may be NULL. */
bool gpuwatch_uses(struct gpuwatch *watch, uint32_t pid, uint32_t device);

/* A worker. Its GPUs: those that the driver says its process uses, else that of its local rank. */
struct gpuwatch_worker {
	uint32_t pid;
	int32_t local_rank; /* -1: unknown */
	int64_t since_ns;   /* CLOCK_MONOTONIC: the window's begin */
};

/* The state of the GPUs, for /metrics. */
struct gpuwatch_state {
	size_t device_cnt;
	struct gpuhw_device devices[GPUHW_DEVICES_MAX];
	struct gpuhw_values values[GPUHW_DEVICES_MAX]; /* the latest values of each */
	uint64_t fed[GPUHW_DEVICES_MAX];	       /* metrics that PM sampling provides now */
	/* Counts of sampler processes: started, crashed, killed. */
	uint32_t samplers, crashed, hung;
};

/* watch may be NULL. */
void gpuwatch_state(struct gpuwatch *watch, struct gpuwatch_state *ret);

/*
 * Appends the worker's GPUs and their samples since since_ns to side, or a record of why there
 * are none. watch may be NULL. Returns 0 or -ENOMEM.
 */
_must_check_ int gpuwatch_take(struct gpuwatch *watch, const struct gpuwatch_worker *worker,
			       struct sidecar *side);
