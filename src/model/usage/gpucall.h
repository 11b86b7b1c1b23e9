/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a GPU runtime or driver does, by its name: CUDA's runtime and driver, and HIP.
 */
#pragma once

#include "base/base.h"

enum gpucall {
	GPUCALL_OTHER,
	GPUCALL_LAUNCH,	  /* a kernel or a graph */
	GPUCALL_COPY,	  /* copies and sets */
	GPUCALL_WAIT,	  /* returns when the device has done what was launched before */
	GPUCALL_ALLOCATE, /* allocates, maps or frees memory of the device */
	GPUCALL_PIN,	  /* allocates, registers or frees page-locked memory of the host */
};

/* By prefix. O(number of known names). */
enum gpucall gpucall_of(const char *name);

/* Whether it allocates, maps, pins or frees memory: such calls can stall the device. */
bool gpucall_is_memory(const char *name);
