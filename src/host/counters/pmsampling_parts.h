/* SPDX-License-Identifier: Apache-2.0 */
/* What pmsampling.c (the choice) and pmsampling_session.c (the sampler) share. */
#pragma once

#include "host/counters/pmsampling.h"
#include "host/counters/pmsampling_abi.h"

#define PM_COMPANIONS 2

struct pm_functions {
	int (*open)(struct pm_host_open *);
	int (*close)(struct pm_host_close *);
	int (*chips)(struct pm_host_chips *);
	int (*add)(struct pm_host_add *);
	int (*config_size)(struct pm_config_size *);
	int (*config_get)(struct pm_config_get *);
	int (*config_passes)(struct pm_config_passes *);

	void *companions[PM_COMPANIONS]; /* of dlopen(), NULL where there is none */
	uint32_t profiling; /* sessions that hold the profiler, which a process initializes once */
};

/* A choice made ready: what a device is configured with, and what evaluates its samples. */
struct pm_plan {
	struct pm_host *host;
	uint8_t *config;
	size_t config_bytes;
	const char *names[PM_KIND_CNT];
	enum pm_kind kinds[PM_KIND_CNT]; /* of names */
	size_t cnt;
};

/* Returns 0, -EIO when the library fails, or -ENOMEM. */
_must_check_ int pm_plan_open(const struct pm_library *library, const char *chip,
			      const uint8_t *availability, const struct pm_choice *choice,
			      struct pm_plan *ret);
void pm_plan_close(const struct pm_library *library, struct pm_plan *plan);
