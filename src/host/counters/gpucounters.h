/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of GPUs, thousands of samples a second for the time of a window, whoever made
 * the GPUs: a back end is one table of functions, and nothing outside of its own files knows the
 * vendor's name. Slower values, at all times, are gpuhw.h's.
 *
 *	open	count, device	start of each device	drain by turns	stop of each	close
 *
 * Calls may block or crash with the vendor's library: they belong in a process of their own
 * (serve/gpuwatch_sampler.h), and all into the same thread. To add a vendor: copy nullcounters.c;
 * docs/gpu-vendors.md.
 *
 * struct gpucounters is all devices of the first back end that has some. What came is taken as a
 * piece of a sidecar, whose reasons say what is missing and why. What kernels are joined with is
 * handed on as it was sampled, every 0.1 ms, or as means of as little as all devices together have
 * room for: a host hands on 80,000 such values a second (4 metrics, 24 bytes each: 2 MB), 8 devices
 * every 0.4 ms. The rest is means of 10 ms.
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
	 * Asked when a tool has the counters: whether it has let go of them, so that one more
	 * try is worth it. NULL: there is nobody to ask.
	 */
	bool (*let_go)(void *arg, const struct gpupause_tool *tool);
	void *arg;
};

/* why: one line for people; written where something is missing. */
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
	 * Hands on what the device has. Returns 0, with a line in why where it samples less
	 * often from now on; -errno: no more comes.
	 */
	int (*drain)(void *state, size_t idx, char why[static GPUHW_WHY]);

	/* Hands on the rest and lets go of the counters. Nothing, where it was not started. */
	void (*stop)(void *state, size_t idx);
};

/* All back ends, and all tools that may have their counters; ends with NULL. */
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
 * Starts on every device. Returns 0, if on any; else -errno, with *ret all the same, to take the
 * reasons from: one for each device, or one for all. -ENOMEM: *ret is NULL.
 */
_must_check_ int gpucounters_start(const struct gpucounters_host *host, struct gpucounters **ret);

/* Drains every device. Returns how many are still sampled. */
int gpucounters_drain(struct gpucounters *counters);

/*
 * Appends the devices, their ids and the samples since the call before. Returns 0 or -ENOMEM:
 * samples are lost.
 */
_must_check_ int gpucounters_take(struct gpucounters *counters, struct sidecar *side);

/* Takes what came last, lets go of the counters, and frees. NULL is fine. Returns NULL. */
struct gpucounters *gpucounters_stop(struct gpucounters *counters, struct sidecar *side);
