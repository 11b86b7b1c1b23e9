/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A back end for counters of a GPU that isn't there: copy this file for another vendor, rename what
 * is called null, and fill in where the comments say. Then name its table in gpucounters.h, put it
 * into gpucounters_all (gpucounters.c) and the file into meson.build; docs/gpu-vendors.md goes
 * through it step by step. Nothing else of PerfTracker has to know the vendor: values are named by
 * format/gpumetric.h, and what is not set is told as not sampled.
 *
 * How vendors' interfaces map to the table:
 *
 *	here	CUPTI's PM sampling	rocprofiler-sdk			Level Zero
 *	open	cuInit, cuDevice...	rocprofiler_query_available_agents	zeDeviceGet
 *	start	Enable, SetConfig, Start	device counting, start_context	zetMetricStreamerOpen
 *	drain	DecodeData, Evaluate	sample_device_counting_service	zetMetricStreamerReadData
 *	stop	Stop, Disable		stop_context			zetMetricStreamerClose
 */
#include "host/counters/gpucounters.h"

#include <errno.h>
#include <stdio.h>

/* One an open back end; a real one has the vendor's functions, found by dlsym(), and devices. */
struct null_state {
	const struct gpucounters_setup *setup; /* of the device, while it is sampled */
};

/*
 * Open the driver's library by its SONAME with dlopen() and find the devices, without making a
 * context on one, which would take memory of the job's. Counters can wait for start(): what is told
 * of devices that are known names them.
 */
static int null_open(_unused_ void **ret_state, char why[static GPUHW_WHY])
{
	(void)snprintf(why, GPUHW_WHY, "no null GPU");
	return -ENODEV;
}

static void null_close(void *state)
{
	free(state);
}

static size_t null_count(_unused_ const void *state)
{
	return 1;
}

/* The UUID joins what the management library tells of the same device. */
static void null_device(_unused_ const void *state, size_t idx, struct gpucounters_device *ret)
{
	*ret = (struct gpucounters_device){ .index = (uint32_t)idx };
}

/*
 * Choose those metrics that the device takes at once: a sampler cannot repeat the job's work.
 * Keep a copy of setup. If the counters are another tool's that can be paused by a program, name
 * it in gpucounters_tools, call setup->let_go() once, and try again if it says so.
 */
static int null_start(void *state, _unused_ size_t idx, const struct gpucounters_setup *setup,
		      _unused_ char why[static GPUHW_WHY])
{
	((struct null_state *)state)->setup = setup;
	return 0;
}

/*
 * For each setup->bucket_ns of which the device has samples, one call of setup->take() with their
 * means: shares as 0..1, rates a second. Times are CLOCK_MONOTONIC, whatever the device's clock is.
 * Read so much and no more: a device that fills as fast as it is read must not keep the thread.
 * Where its buffer overflows sample less often, and say so in why.
 */
static int null_drain(_unused_ void *state, _unused_ size_t idx,
		      _unused_ char why[static GPUHW_WHY])
{
	return 0;
}

/* Stop first and then read to the end, so that there is one; let go of the counters. */
static void null_stop(void *state, _unused_ size_t idx)
{
	((struct null_state *)state)->setup = NULL;
}

const struct gpucounters_ops gpucounters_null = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.count = null_count,
	.device = null_device,
	.start = null_start,
	.drain = null_drain,
	.stop = null_stop,
};
