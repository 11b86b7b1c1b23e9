/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's PM sampling from CUDA 12.6 on: the host API, which plans and evaluates on the CPU alone,
 * for chips that are elsewhere, too. pmsampling_target_abi.h has the calls to a device. Every
 * struct holds its size up to its last member: a library accepts its own and older sizes, and
 * refuses others. pmsampling_abi_check.c compares these with the headers of a toolkit
 * (cupti_profiler_host.h, which a C compiler refuses as it is).
 */
#pragma once

#include "base/base.h"

#define PM_SAMPLING_PROFILER 1 /* CUPTI_PROFILER_TYPE_PM_SAMPLING */
#define PM_NO_APPEND 24	       /* API version of CUDA 12.6: struct pm_configure ends before it */

enum {
	PM_OK = 0,
	PM_INVALID_OPERATION = 7, /* sampling is on already, by whomever */
	PM_BUSY = 26,
	PM_UNSUPPORTED = 27,
	PM_NO_PERMISSION = 35,
};

/* Of which a sample is due: so many cycles of the system's clock, or nanoseconds. */
enum { PM_EVERY_CYCLES = 0, PM_EVERY_NS = 1 };
enum { PM_KEEP_OLDEST = 0 };
enum { PM_STOP_OTHER = 0, PM_STOP_FULL = 1, PM_STOP_END = 2 };

#define PM_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

struct pm_host; /* of the library */

/*
 * The size ends after host, which every version accepts. The last member is CUDA 13.2's, which
 * clears it even if the passed size excludes it.
 */
struct pm_host_open {
	size_t size;
	void *priv;
	int profiler;
	const char *chip;	     /* "GH100" */
	const uint8_t *availability; /* counters that the device can give; NULL: of the chip */
	struct pm_host *host;
	const char *set;
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

struct pm_evaluate {
	size_t size;
	void *priv;
	struct pm_host *host;
	const uint8_t *image;
	size_t image_bytes;
	size_t idx;
	const char **names;
	size_t cnt;
	double *values;
};
