/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks of one worker, with the critical time of each function and of what it calls, beside
 * the mean of its peers: the data of a differential flame graph.
 * Source: Gregg, "Differential Flame Graphs" (2014).
 */
#pragma once

#include "localize/job.h"
#include "model/report.h"

/*
 * Fills out->flame; leaves it empty where nothing has callers. culprit: index of the worker, or
 * SIZE_MAX: the first one, of which no finding says anything. Returns 0 or -ENOMEM.
 */
_must_check_ int flame_fill(const struct job *job, size_t culprit, struct report *out);
