/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring that passes chunks from node to node. In each step every node sends the
 * chunk that it received in the step before; a node may run ahead of its successor
 * by RING_BUFFERS chunks at most. So one slow link slows all: the others send at
 * full speed and wait, the slow one is never idle.
 * Source: PerfTracker section 3, figures 3-5; NCCL's ring algorithm.
 */
#pragma once

#include "base/base.h"

#define RING_BUFFERS 2

struct ring {
	size_t node_cnt;
	unsigned int step_cnt;
	double step_ns;		 /* a chunk on a healthy link */
	const double *slow;	 /* by node: its link takes so many times as long */
	const int64_t *ready_ns; /* by node: it came */
	uint64_t seed;		 /* of the jitter of chunks */
};

struct ring_burst {
	int64_t start_ns, end_ns;
};

/*
 * Plays the ring. bursts[node * step_cnt + step]: when the node's link was busy.
 * Returns when the last chunk arrived. O(nodes * steps).
 */
int64_t ring_play(const struct ring *ring, struct ring_burst *bursts);

/* The same without playing it: all are there, and the slowest link sets the pace. */
double ring_length_ns(const struct ring *ring);
