/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring that passes chunks from node to node. In each step every node sends the chunk that it
 * received in the previous step; a node may be at most RING_BUFFERS chunks ahead of its successor.
 * So one slow link slows all: the others send at full speed and wait, the slow one is never idle.
 * Source: PerfTracker section 3, figures 3-5; NCCL's ring algorithm.
 */
#pragma once

#include "base/base.h"

#define RING_BUFFERS 2

struct ring {
	size_t node_cnt;
	unsigned int step_cnt;
	double step_ns;		 /* of a chunk on a healthy link */
	const double *slow;	 /* by node: factor on its link's time */
	const int64_t *ready_ns; /* by node: time of arrival */
	uint64_t seed;		 /* for the jitter of chunks */
};

struct ring_burst {
	int64_t start_ns, end_ns;
};

/*
 * Simulates the ring. bursts[node * step_cnt + step]: when the node's link was busy. Returns the
 * arrival of the last chunk. O(nodes * steps).
 */
int64_t ring_play(const struct ring *ring, struct ring_burst *bursts);

/* The closed form: all nodes are ready, and the slowest link limits the ring. */
double ring_length_ns(const struct ring *ring);
