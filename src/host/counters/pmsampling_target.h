/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libcupti that sample a device, found at run time. */
#pragma once

#include "host/counters/pmsampling_target_abi.h"

struct pm_target {
	int (*version)(uint32_t *);
	int (*initialize)(struct pm_initialize *);
	int (*deinitialize)(struct pm_initialize *);
	int (*chip_name)(struct pm_chip_name *);
	int (*availability)(struct pm_availability *);
	int (*enable)(struct pm_enable *);
	int (*disable)(struct pm_order *);
	int (*configure)(struct pm_configure *);
	int (*start)(struct pm_order *);
	int (*stop)(struct pm_order *);
	int (*image_size)(struct pm_image_size *);
	int (*image_clear)(struct pm_image_clear *);
	int (*decode)(struct pm_decode *);
	int (*image_info)(struct pm_image_info *);
	int (*sample_info)(struct pm_sample_info *);
	int (*evaluate)(struct pm_evaluate *);
};

/* Fills the table from dlopen()'s handle. Returns the first missing symbol, else NULL. */
const char *pm_target_find(void *handle, struct pm_target *ret);
