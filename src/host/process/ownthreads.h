/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of PerfTracker's threads in one process, a worker or the daemon, as the scheduler
 * accounts it in /proc/PID/task/TID/schedstat: exact, read from outside, without a part in the
 * job. The agent's threads are found by their names, which start with "pt-".
 * Source: proc(5); Documentation/scheduler/sched-stats.rst.
 */
#pragma once

#include "model/ownthread.h"

#define OWNTHREADS_MAX 16u /* of one process; more are not counted */

struct ownthreads {
	const char *root; /* prefix before /proc; borrowed */
	uint32_t pid;
	enum own_thread
		usual; /* of threads with other names; OWN_THREAD_CNT: those are the job's */
	struct {
		uint32_t tid;
		enum own_thread thread;
		int64_t cpu_ns; /* since it began; stays when it has ended */
	} threads[OWNTHREADS_MAX];
	size_t cnt;
	int64_t find_ns, wait_ns; /* when new threads are looked for; the wait before that */
};

void ownthreads_open(struct ownthreads *own, const char *root, uint32_t pid, enum own_thread usual);

/* Reads the counters; looks for new threads now and then, less and less often. */
void ownthreads_look(struct ownthreads *own, int64_t now_ns);

/* Adds what the last look saw to sums[]. */
void ownthreads_add(const struct ownthreads *own, int64_t sums[static OWN_THREAD_CNT]);
