/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template of a back end for a vendor's management library, without a GPU: copy this file for
 * another vendor, rename each "null", and fill in the functions as their comments describe. Then
 * name its table in gpuhw.h, put it into the list in gpuhw.c and the file into meson.build;
 * docs/gpu-vendors.md goes through it step by step. No other part of PerfTracker depends on the
 * vendor: model/gpumetric.h names the values.
 *
 * How vendors' interfaces map to the table:
 *
 *	here	NVML				AMD SMI				Level Zero's sysman
 *	open	nvmlInit_v2			amdsmi_init			zesInit
 *	slow	GetFieldValues, GetClockInfo	amdsmi_get_gpu_metrics_info	zesFrequencyGetState, ...
 *	fast	GPM				the same, differences		zesEngineGetActivity
 *	users	GetComputeRunningProcesses	amdsmi_get_gpu_process_list	zesDeviceProcessesGetState
 */
#include "host/gpu/gpuhw.h"

#include <errno.h>
#include <stdio.h>

/*
 * A real back end has the vendor's functions here, found by dlsym(), and the last values of
 * counters.
 */
struct null_state {
	struct gpuhw_device devices[1];
};

/*
 * dlopen() by SONAME; look up all functions. The devices alone are needed: a function that a driver
 * lacks takes its own values away. Fill in names, UUIDs and the most that clocks and links can do.
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

static const struct gpuhw_device *null_device(const void *state, size_t idx)
{
	return &((const struct null_state *)state)->devices[idx];
}

/*
 * gpuhw_set() for each value that the device has, in the units of model/gpumetric.h. Counters that
 * wrap are continued here. A device that fell off the bus: set `lost`, return -ENODEV, and stop
 * querying it.
 */
static int null_slow(_unused_ void *state, _unused_ size_t idx, struct gpuhw_values *ret)
{
	*ret = (struct gpuhw_values){ 0 };
	return 0;
}

/* Shares and rates since the call before. Where the vendor has none that quick: -ENOTSUP. */
static int null_fast(_unused_ void *state, _unused_ size_t idx, _unused_ struct gpuhw_values *ret)
{
	return -ENOTSUP;
}

/* Process numbers as this PID namespace has them, or none: then local ranks decide. */
static size_t null_users(_unused_ void *state, _unused_ size_t idx, _unused_ uint32_t *ret_pids,
			 _unused_ size_t cap)
{
	return 0;
}

const struct gpuhw_ops gpuhw_null = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.count = null_count,
	.device = null_device,
	.slow = null_slow,
	.fast = null_fast,
	.users = null_users,
};
