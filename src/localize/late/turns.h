/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which iterations a worker is in a function for long before one collective: a pause comes in some
 * iterations of a worker, and in other iterations of other workers.
 */
#pragma once

#include "localize/job.h"

/*
 * In how many iterations the worker is in the function for least_ns or longer, before a collective.
 * Adds 1 to each of them in by_iteration, unless it is NULL. O(shares of the worker's collectives).
 */
size_t turns_count(const struct job *job, uint32_t worker, uint32_t function, double least_ns,
		   uint32_t *by_iteration);

/* Whether the worker passes the function at once in most iterations, and in others is there for half of longest_ns. */
bool turns_seldom(const struct job *job, uint32_t worker, uint32_t function, double longest_ns);
