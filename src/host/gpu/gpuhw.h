/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs as the host sees them, for any vendor: a back end is one table of functions in one file, and
 * no code outside of that file depends on the vendor. model/gpumetric.h names the sampled values.
 *
 * To add a vendor: copy nullhw.c, which has no devices, and add one line in gpuhw.c;
 * docs/gpu-vendors.md.
 *
 * Calls may block in the driver without limit: they belong in a thread of their own
 * (live/gpuwatch/gpuwatch.h), and never into a worker.
 */
#pragma once

#include "model/gpumetric.h"

#define GPUHW_DEVICES_MAX 16u /* of one host; more are left out */
#define GPUHW_WHY 56	      /* bytes of a reason, as a sidecar has them */
#define GPUHW_UUID 40
#define GPUHW_FAULTS_MAX 16u /* of one look; of more the first are kept */

struct gpuhw_device {
	char name[40];
	char uuid[GPUHW_UUID]; /* five groups of hexadecimal digits; "": unknown */
	/* At most; 0: unknown. Links: one direction, all together. */
	double core_hz, pcie_bytes_per_sec, link_bytes_per_sec;
	bool lost;	     /* the device fell off the bus; it is not queried again */
	char why[GPUHW_WHY]; /* why fast samples, or all, are absent; "" when they aren't */
};

/* Values of one sample: those whose bit is in `set`; and the faults since the previous one. */
struct gpuhw_values {
	uint64_t set; /* bit per enum gpu_metric but GPU_METRIC_FAULT */
	double values[GPU_METRIC_CNT];
	uint32_t faults[GPUHW_FAULTS_MAX], fault_cnt; /* numbers, the earliest first */
};

struct gpuhw_ops {
	const char *name; /* of the interface: "NVML" */

	/*
	 * Opens the library and finds its devices. Returns 0 and *ret_state, or -errno
	 * with the reason in why.
	 */
	int (*open)(void **ret_state, char why[static GPUHW_WHY]);
	void (*close)(void *state);

	size_t (*count)(const void *state);
	/* Borrowed until close; `lost` changes. */
	const struct gpuhw_device *(*device)(const void *state, size_t idx);

	/*
	 * slow: clocks, power, counters; milliseconds, to be called about once a second. fast:
	 * rates and shares since the call before, 0 values at the first; not more than once in 100
	 * ms. Return 0, or -errno with nothing set: -ENODEV lost, -ENOTSUP not available.
	 */
	int (*slow)(void *state, size_t idx, struct gpuhw_values *ret);
	int (*fast)(void *state, size_t idx, struct gpuhw_values *ret);

	/* Processes that compute on the device, as this PID namespace calls them: how many. */
	size_t (*users)(void *state, size_t idx, uint32_t *ret_pids, size_t cap);
};

extern const struct gpuhw_ops gpuhw_null; /* the example; never opened */

/* An open back end. Zeroed: no back end. */
struct gpuhw {
	const struct gpuhw_ops *ops;
	void *state;
};

/*
 * Opens the first back end that has devices. Returns 0, or -ENODEV with the reasons of
 * all in why.
 */
_must_check_ int gpuhw_open(struct gpuhw *hw, char why[static GPUHW_WHY]);
void gpuhw_close(struct gpuhw *hw);

static inline void gpuhw_set(struct gpuhw_values *values, enum gpu_metric metric, double value)
{
	values->values[metric] = value;
	values->set |= 1ULL << metric;
}
