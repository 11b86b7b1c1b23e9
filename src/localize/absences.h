/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of data that were not there, for the report's coverage: kinds of samples that no worker
 * has, or that were too coarse for its functions, and counters of GPUs that some lack, with the
 * reason that its host gave.
 */
#pragma once

#include "localize/job.h"
#include "model/report.h"

#define ABSENCES_GPU_MAX 16u /* reasons that are reported; GPUs with the same reason count once */

/* Sets out's absences, from its arena. Returns 0 or -ENOMEM. O(n log n). */
_must_check_ int absences_list(const struct job *job, struct report *out);
