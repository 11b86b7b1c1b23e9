/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the libcupti of CUDA 13 may be, the first that can sample hardware counters: what the
 * sampler tries, and what the doctor says of it. Not the copy that a job traces its kernels by
 * (collect/gpu/cupti_library.h), which may be an older one.
 *
 * Source: the files of the wheels nvidia-cuda-cupti 13 and nvidia-cuda-cupti-cu12 on PyPI; CUDA
 * installation guide for Linux.
 */
#pragma once

#include "base/base.h"

#include <limits.h>

#define CUPTI_SONAME "libcupti.so.13"
#define CUPTIPATH_CNT 4
#define CUPTIPATH_ENV "PERFTRACKER_CUPTI" /* names one */

struct cuptipath {
	const char *names[CUPTIPATH_CNT + 1]; /* for dlopen(), best first; ends with NULL */
	char wheel[PATH_MAX];
};

/*
 * The one that is named, the value of CUPTIPATH_ENV; NULL or "": the loader's, then the one that
 * pip put beside a Python, then the toolkit's. path_list: as $PATH, where the Python is looked for;
 * NULL: none. named is borrowed, and ret is to stay where it is.
 */
void cuptipath_find(const char *named, const char *path_list, struct cuptipath *ret);
