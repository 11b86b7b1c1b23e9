/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of PerfTracker's own threads and processes on this host, by the kernel's account: the
 * agent's threads in the workers, the daemon's, the process that the user started, and
 * summarizers that have ended. hostd publishes it once a second.
 */
#pragma once

#include "host/process/ownthreads.h"

struct worker;

struct own_costs {
	struct ownthreads daemon, parent;
	struct own_cpu ended; /* of workers that have ended */
	struct own_cpu cpu;   /* the latest sums */
	int64_t looked_ns;
};

void owncosts_open(struct own_costs *own);

/*
 * Call it often: once a second returns true, and starts new sums of all but the workers; then each
 * worker follows, by owncosts_add_worker().
 */
bool owncosts_look(struct own_costs *own, int64_t now_ns);
void owncosts_add_worker(struct own_costs *own, struct worker *worker, int64_t now_ns);

/* Keeps what the threads of a worker used, which has ended. */
void owncosts_end_worker(struct own_costs *own, const struct worker *worker, int64_t now_ns);
