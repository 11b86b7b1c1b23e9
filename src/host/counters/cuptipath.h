/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate paths of a libcupti that can sample hardware counters: of CUDA 13, or 12.6 to 12.9.
 * Used by the sampler and the doctor. Not the copy that traces a job's kernels
 * (agent/gpu/cupti/cupti_library.h), which may be older.
 *
 * A library works with drivers of its CUDA version or later: CUDA 13's wants a driver of CUDA 13
 * (580), CUDA 12's does with older and with newer ones. Where both work, 13 is first: it supports
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
 * named: the value of CUPTIPATH_ENV, the only candidate; NULL or "": for each version that works
 * with the driver the loader's, then the one that pip put beside a Python, then the toolkit's.
 * path_list: as $PATH, to find the Python; NULL: none. driver: from cuDriverGetVersion(), 12040 is
 * CUDA 12.4; 0: unknown, all versions. named is borrowed, and ret must not be moved: names points
 * into wheels.
 */
void cuptipath_find(const char *named, const char *path_list, int driver, struct cuptipath *ret);
