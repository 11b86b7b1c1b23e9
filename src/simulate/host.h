/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's view of a simulated worker's host: processes that used its CPU, and pressure. */
#pragma once

#include "format/sidecar/sidecar.h"
#include "simulate/player.h"

struct host_view {
	double cpu_frac, delay_frac; /* training thread: on a CPU, runnable without one / window */
	struct sidecar_thief thief;  /* set if delay_frac is above 0 */
};

void host_look(const struct simulation *sim, const struct record *record, struct host_view *ret);
