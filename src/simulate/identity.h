/* SPDX-License-Identifier: Apache-2.0 */
/* The identity and clock of a simulated worker: the same at both levels. */
#pragma once

#include "simulate/simulation.h"

#define DEVICE_NAME "NVIDIA H800"
#define FIRST_STEP 100 /* the job's number of the first iteration in the window */

/* "host-0003". */
void identity_host(const struct simulation *sim, int rank, char ret[static 16]);

static inline int identity_pid(int rank)
{
	return 20000 + 10 * rank; /* its threads have the following numbers */
}

/* "12": distinct for all groups of a job. */
void identity_group(const struct meeting_id *id, char ret[static 16]);

/*
 * Converts a time of the job to the wall clock of the rank's host, which has an offset and drifts.
 */
int64_t identity_wall_ns(const struct simulation *sim, int rank, int64_t time_ns);
