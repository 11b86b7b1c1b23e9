/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template of a counters back end, without a GPU: copy this file for another vendor, rename each
 * "null", and fill in the functions as their comments describe. Then name its table in
 * gpucounters.h, put it into gpucounters_all (gpucounters.c) and the file into meson.build;
 * docs/gpu-vendors.md goes through it step by step. No other part of PerfTracker depends on the
 * vendor: model/gpumetric.h names the values, and values that are not set are reported as not
 * sampled.
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

/* One per open back end; a real one has the vendor's functions, found by dlsym(), and devices. */
struct null_state {
	const struct gpucounters_setup *setup; /* of the device, while it is sampled */
};

/*
 * Open the driver's library by its SONAME with dlopen() and find the devices, without creating a
 * context, which would take the job's memory. Counters can wait for start(): reasons for missing
 * samples need the devices' names.
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

/* The UUID joins the management library's values of the same device. */
static void null_device(_unused_ const void *state, size_t idx, struct gpucounters_device *ret)
{
	*ret = (struct gpucounters_device){ .index = (uint32_t)idx };
}

/*
 * Choose metrics that the device can sample at once: a sampler cannot repeat the job's work. Keep a
 * copy of setup. If another tool holds the counters and a program can pause it, name it in
 * gpucounters_tools, call setup->let_go() once, and retry if it returns true.
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
 * Read a limited amount: a device that fills as fast as it is read must not hold the thread. After
 * an overflow of its buffer sample less often, and note that in why.
 */
static int null_drain(_unused_ void *state, _unused_ size_t idx,
		      _unused_ char why[static GPUHW_WHY])
{
	return 0;
}

/* Stop first, then read to the end; release the counters. */
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
