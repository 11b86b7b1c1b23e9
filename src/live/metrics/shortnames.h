/* SPDX-License-Identifier: Apache-2.0 */
/* Maps names of kernels and copies to few classes, used as stable labels of /metrics. */
#pragma once

#include "model/collective.h"

#define METRICS_WORD_MAX COLLECTIVE_WORD_MAX

/* A kernel by its name: "matmul", "attention", "collective", ..., "other". */
const char *kernel_kind(const char *name);

/* A copy or set: "HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "set", "other". */
const char *memop_kind(const char *name);
