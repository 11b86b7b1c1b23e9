/* SPDX-License-Identifier: Apache-2.0 */
/* How long a worker is in a place of the program on its host. */
#pragma once

#include "localize/job.h"

/* On the critical path, or in the training thread, hidden behind the device or not. */
enum place_time { TIME_CRITICAL, TIME_THREAD };

/*
 * Share of worker w's window. Data loading counts with all that is below it on the host, a function
 * with the built-ins that it calls. frame: of the job. O(frames).
 */
double place_beta(const struct job *job, uint32_t frame, size_t w, enum place_time time);

/* The same of a function by its own time and that of the built-ins that it calls. */
double place_own_beta(const struct job *job, uint32_t frame, size_t w, enum place_time time);
