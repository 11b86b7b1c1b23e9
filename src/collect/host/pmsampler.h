/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PM sampling of all NVIDIA GPUs of the host for the time of a window: a session for each
 * (pmsampling_session.h), drained by turns. What came is taken as a piece of a sidecar, whose
 * reasons say what is missing and why.
 *
 * What kernels are joined with is handed on as it was sampled, every 0.1 ms, or as means of as
 * little as all devices together have room for: a host hands on 80,000 such values a second
 * (4 metrics, 24 bytes each: 2 MB), 8 devices every 0.4 ms. The rest is means of 10 ms.
 *
 * For a process of its own; may hang or crash with the vendor's library.
 */
#pragma once

#include "collect/host/pmsampling_session.h"
#include "format/sidecar.h"

#define PM_FINE_NS (100 * NSEC_PER_USEC)
#define PM_FINE_DEVICES 2 /* so many have room for it; more share it */
#define PM_MEAN_MS 10

struct pmsampler;

struct pmsampler_setup {
	const char *library; /* path; NULL: as collect/host/cuptipath.h finds it */
	/* As in struct pm_setup; arg is handed to it. */
	bool (*free_counters)(void *arg, const char *chip);
	void *arg;
};

/*
 * Opens the libraries and starts on every device. Returns 0, if on any; else -errno, with
 * *ret all the same, to take the reasons from: one for each device, or one for all. -ENOMEM:
 * *ret is NULL.
 */
_must_check_ int pmsampler_start(const struct pmsampler_setup *setup, struct pmsampler **ret);

/* Drains every device. Returns how many are still sampled. */
int pmsampler_drain(struct pmsampler *sampler);

/*
 * Appends the devices, their ids and the samples since the call before. Devices have the
 * order and number of the driver. Returns 0 or -ENOMEM: samples are lost.
 */
_must_check_ int pmsampler_take(struct pmsampler *sampler, struct sidecar *side);

/* Takes what came last, lets go of the counters, and frees. NULL is fine. Returns NULL. */
struct pmsampler *pmsampler_stop(struct pmsampler *sampler, struct sidecar *side);
