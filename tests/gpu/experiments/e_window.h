/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deep window of the agent's CUPTI back end in a program of an experiment: opened and closed as
 * agent/gpu/gpu.c does it, with a thread that takes its events out and counts them.
 * One at a time. CUPTI_LIBRARY names the copy of libcupti to use where the system's isn't it.
 */
#pragma once

#include "base/base.h"

#define WINDOW_NODES_MAX 4096
#define WINDOW_SPINS_MAX 8192

struct window {
	uint64_t kernels, calls, dropped, untimed;
	uint64_t graph_kernels;	   /* of those, launched by a graph's node */
	uint64_t unlaunched;	   /* kernels whose correlation no recorded call has */
	unsigned nodes;		   /* different nodes of graphs */
	int64_t open_ns, close_ns; /* what both took; close: until detached */
	int64_t drain_cpu_ns;	   /* CPU time of the thread that takes events out */
	size_t spin_cnt;	   /* kernels of at least a millisecond, in the order seen */
	struct {
		int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	} spins[WINDOW_SPINS_MAX];
	char detach[128]; /* "" or why something stayed */
};

/* Returns 0, or -errno with the reason in why. */
_must_check_ int window_open(char why[static 128]);

/* Valid until the next window_open(). */
const struct window *window_close(void);
