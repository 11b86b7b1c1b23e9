/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a libcupti that can sample hardware counters may be: of CUDA 13, or 12.6 to 12.9. It is what
 * the sampler tries, and what the doctor says of it. Not the copy that a job traces its kernels by
 * (collect/gpu/cupti_library.h), which may be an older one.
 *
 * A library works with drivers of its CUDA version or later: CUDA 13's wants a driver of CUDA 13
 * (580), CUDA 12's does with older and with newer ones. Where both will do, 13 goes first: it knows
 * more chips.
 *
 * Source: the files of the wheels nvidia-cuda-cupti 13 and nvidia-cuda-cupti-cu12 on PyPI; CUDA
 * installation guide for Linux; CUDA compatibility guide, "Minor Version Compatibility".
 */
#pragma once

#include "base/base.h"

#include <limits.h>

#define CUPTIPATH_MAJORS 2 /* 13, 12 */
#define CUPTIPATH_CNT (CUPTIPATH_MAJORS * 6)
#define CUPTIPATH_ENV "PERFTRACKER_CUPTI" /* names one */

struct cuptipath {
	const char *names[CUPTIPATH_CNT + 1]; /* for dlopen(), best first; ends with NULL */
	char wheels[CUPTIPATH_MAJORS][PATH_MAX];
};

/*
 * The one that is named, the value of CUPTIPATH_ENV; NULL or "": of each version that goes with the
 * driver the loader's, then the one that pip put beside a Python, then the toolkit's. path_list: as
 * $PATH, where the Python is looked for; NULL: none. driver: as cuDriverGetVersion() tells it,
 * 12040 is CUDA 12.4; 0: unknown, and all are told. named is borrowed, and ret is to stay where it
 * is.
 */
void cuptipath_find(const char *named, const char *path_list, int driver, struct cuptipath *ret);
