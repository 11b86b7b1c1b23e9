/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI 13's host API for PM sampling that chooses metrics: it runs on the
 * CPU alone, for chips that are elsewhere, too. Every struct tells its size, so that a
 * newer library knows which members are there. pmsampling_abi_check.c compares these with
 * the toolkit's headers (cupti_profiler_host.h, which a C compiler refuses as it is).
 */
#pragma once

#include "base/base.h"

#define PM_SAMPLING_PROFILER 1 /* CUPTI_PROFILER_TYPE_PM_SAMPLING */

enum { PM_OK = 0 };

struct pm_host; /* of the library */

struct pm_host_open {
	size_t size;
	void *priv;
	int profiler;
	const char *chip;	     /* "GH100" */
	const uint8_t *availability; /* counters that the device can give; NULL: of the chip */
	struct pm_host *host;
};

struct pm_host_close {
	size_t size;
	void *priv;
	struct pm_host *host;
};

struct pm_host_chips {
	size_t size;
	void *priv;
	size_t cnt;
	const char *const *names;
};

struct pm_host_add {
	size_t size;
	void *priv;
	struct pm_host *host;
	const char **names;
	size_t cnt;
};

struct pm_config_size {
	size_t size;
	void *priv;
	struct pm_host *host;
	size_t bytes;
};

struct pm_config_get {
	size_t size;
	void *priv;
	struct pm_host *host;
	size_t bytes;
	uint8_t *config;
};

struct pm_config_passes {
	size_t size;
	void *priv;
	size_t bytes;
	uint8_t *config;
	size_t cnt;
};
