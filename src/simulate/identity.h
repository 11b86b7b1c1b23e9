/* SPDX-License-Identifier: Apache-2.0 */
/* Who a simulated worker is and what its clock shows: the same at both levels. */
#pragma once

#include "simulate/simulation.h"

#define DEVICE_NAME "NVIDIA H800"
#define FIRST_STEP 100 /* number of the job's first iteration in the window */

/* "host-0003". */
void identity_host(const struct simulation *sim, int rank, char ret[static 16]);

static inline int identity_pid(int rank)
{
	return 20000 + 10 * rank; /* its threads are numbered after it */
}

/* "12": unlike for all groups of a job. */
void identity_group(const struct meeting_id *id, char ret[static 16]);

/* A moment of the job on the wall clock of the rank's host, which is off and drifts. */
int64_t identity_wall_ns(const struct simulation *sim, int rank, int64_t time_ns);
