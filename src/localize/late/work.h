/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker has to compute. Peers (peers.h) are alike enough to compare one function of
 * theirs; to compare how long they work, they must have the same to do.
 */
#pragma once

#include "localize/job.h"

/*
 * Whether two workers of a peer group have the same to do: what computes for long does so as
 * often. The last stage of a pipeline, which has the loss, is unlike the others. O(functions).
 */
bool work_is_same(const struct job *job, size_t a, size_t b);

/*
 * Whether a computing function is the same to do for both: as often, and on as many elements.
 * What a worker or its peers do not list is not.
 */
bool work_is_common(const struct job *job, const struct job_function *f, size_t a, size_t b);

/*
 * Elements that worker a computes on in an iteration, as a multiple of those of b, in the
 * functions that both list: what is short is listed by one and not by the other, by chance.
 * NAN: unknown. O(functions).
 */
double work_elements_ratio(const struct job *job, size_t a, size_t b);

/* Time in all computing functions of a worker, per iteration; of a as a multiple of b's. */
double work_compute_ns(const struct job *job, size_t w);
double work_compute_ratio(const struct job *job, size_t a, size_t b);
