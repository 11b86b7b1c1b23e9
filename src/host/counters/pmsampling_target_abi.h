/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's PM sampling: the target API, which speaks to a device. See pmsampling_abi.h. */
#pragma once

#include "host/counters/pmsampling_abi.h"

struct pm_object; /* of the library */

struct pm_initialize {
	size_t size;
	void *priv;
};

struct pm_chip_name {
	size_t size;
	void *priv;
	size_t device;
	const char *name;
};

struct pm_availability {
	size_t size;
	void *priv;
	size_t device;
	size_t bytes;
	uint8_t *image; /* NULL: only bytes is returned */
};

struct pm_enable {
	size_t size;
	void *priv;
	size_t device;
	struct pm_object *object;
};

/* Of start, stop and disable. */
struct pm_order {
	size_t size;
	void *priv;
	struct pm_object *object;
};

struct pm_configure {
	size_t size;
	void *priv;
	struct pm_object *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t buffer_bytes;
	uint64_t interval;
	int trigger;
	int append; /* not in CUDA 12.6, which refuses a size with it: PM_NO_APPEND */
};

struct pm_image_size {
	size_t size;
	void *priv;
	struct pm_object *object;
	const char **names;
	size_t cnt;
	uint32_t samples;
	size_t bytes;
};

struct pm_image_clear {
	size_t size;
	void *priv;
	struct pm_object *object;
	size_t bytes;
	uint8_t *image;
};

struct pm_decode {
	size_t size;
	void *priv;
	struct pm_object *object;
	uint8_t *image;
	size_t bytes;
	int stopped;
	uint8_t overflow;
};

struct pm_image_info {
	size_t size;
	void *priv;
	const uint8_t *image;
	size_t bytes;
	size_t total, populated, completed;
};

struct pm_sample_info {
	size_t size;
	void *priv;
	struct pm_object *object;
	const uint8_t *image;
	size_t bytes;
	size_t idx;
	uint64_t start, end; /* ns of the device's clock */
};
