/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of GPUs, thousands of samples a second during a window, for any vendor: a back
 * end is one table of functions, and no code outside of its own files depends on the vendor.
 * gpuhw.h has slower values, at all times.
 *
 *	open	count, device	start of each device	drain by turns	stop of each	close
 *
 * Calls may block or crash with the vendor's library: they belong in a process of their own
 * (live/gpuwatch/gpuwatch_sampler.h), and all into the same thread. To add a vendor: copy
 * nullcounters.c; docs/gpu-vendors.md.
 *
 * struct gpucounters holds all devices of the first back end that has any. Samples are taken as
 * pieces of a sidecar, with the reason for each missing value. Metrics that are joined with kernels
 * keep every sample (0.1 ms), or means over the shortest time for which all devices together fit
 * the limit: 80,000 such values a second for a host (4 metrics, 24 bytes each: 2 MB), for 8 devices
 * every 0.4 ms. Other metrics are means of 10 ms.
 */
#pragma once

#include "format/sidecar/sidecar.h"
#include "host/counters/gpupause.h"
#include "host/gpu/gpuhw.h"

#define GPUCOUNTERS_DRAIN_MS 10
#define GPUCOUNTERS_FINE_NS (100 * NSEC_PER_USEC)
#define GPUCOUNTERS_FINE_DEVICES 2 /* so many have room for it; more share it */
#define GPUCOUNTERS_MEAN_MS 10

struct gpucounters_device {
	uint32_t index;	       /* as its driver counts */
	char uuid[GPUHW_UUID]; /* as struct gpuhw_device has it; "": unknown */
};

/* How a device is sampled, and where its samples go. */
struct gpucounters_setup {
	int64_t bucket_ns;	 /* averaged over; of samples that are longer, each */
	int64_t (*now_ns)(void); /* clock_mono_ns but in tests */

	/* time_ns: the end, CLOCK_MONOTONIC, ascending. values: borrowed for the call. */
	void (*take)(void *arg, int64_t time_ns, const struct gpuhw_values *values);
	/*
	 * Called when another tool has the counters: returns whether it released them, so that a
	 * second try makes sense. NULL: no way to ask.
	 */
	bool (*let_go)(void *arg, const struct gpupause_tool *tool);
	void *arg;
};

/* why: one line for users; written where something is missing. */
struct gpucounters_ops {
	const char *name; /* of the interface: "PM sampling" */

	/* Finds the devices; what samples may be opened later. Returns 0, or -errno. */
	int (*open)(void **ret_state, char why[static GPUHW_WHY]);
	void (*close)(void *state);

	/* At most GPUHW_DEVICES_MAX, in the order and number of the driver. */
	size_t (*count)(const void *state);
	void (*device)(const void *state, size_t idx, struct gpucounters_device *ret);

	/*
	 * Takes the counters and samples as often as the device can be read. Returns 0; -EPERM,
	 * -EBUSY another tool has them, -ENOTSUP not this device, or another -errno.
	 */
	int (*start)(void *state, size_t idx, const struct gpucounters_setup *setup,
		     char why[static GPUHW_WHY]);

	/*
	 * Passes the device's samples on. Returns 0, with a line in why where it samples less often
	 * from now on; -errno: no further samples.
	 */
	int (*drain)(void *state, size_t idx, char why[static GPUHW_WHY]);

	/* Passes the remaining samples on and releases the counters, if they were started. */
	void (*stop)(void *state, size_t idx);
};

/* All back ends, and all tools that may hold their counters; NULL ends each. */
extern const struct gpucounters_ops *const gpucounters_all[];
extern const struct gpupause_tool *const gpucounters_tools[];

extern const struct gpucounters_ops gpucounters_pmsampling;
extern const struct gpupause_tool gpucounters_dcgm;
extern const struct gpucounters_ops gpucounters_null; /* the example; not one of all */

struct gpucounters;

struct gpucounters_host {
	const struct gpucounters_ops *const *backends; /* gpucounters_all but in tests */
	/* As in struct gpucounters_setup. */
	bool (*let_go)(void *arg, const struct gpupause_tool *tool);
	void *arg;
};

/*
 * Starts on every device. Returns 0 if any started; else -errno, and *ret is set too, with the
 * reasons: one for each device, or one for all. -ENOMEM: *ret is NULL.
 */
_must_check_ int gpucounters_start(const struct gpucounters_host *host, struct gpucounters **ret);

/* Drains every device. Returns how many are still sampled. */
int gpucounters_drain(struct gpucounters *counters);

/*
 * Appends the devices, their ids and the samples since the call before. Returns 0 or -ENOMEM:
 * samples are lost.
 */
_must_check_ int gpucounters_take(struct gpucounters *counters, struct sidecar *side);

/* Takes the remaining samples, releases the counters, and frees. NULL is fine. Returns NULL. */
struct gpucounters *gpucounters_stop(struct gpucounters *counters, struct sidecar *side);
