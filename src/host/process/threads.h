/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time and run-queue delay of every thread of one worker during a window, from
 * /proc/PID/task/TID/schedstat with descriptors kept open: 0.3 us a thread and look. A thread whose
 * counters do not change costs no record; when they move again, the last unchanged moment is
 * recorded too, so that shares of each interval stay right.
 * Source: PerfTracker eq. 4 and 5 (mu and sigma of host functions).
 */
#pragma once

#include "base/vec.h"
#include "format/sidecar/sidecar.h"

#define THREADS_MAX 1024u	       /* per worker; more are counted, not sampled */
#define THREADS_SAMPLES_MAX (2u << 20) /* records of one window: 64 MB */
#define THREADS_LOOK_NS (10 * NSEC_PER_MSEC)
#define THREADS_FIND_NS (50 * NSEC_PER_MSEC)

struct sampled_thread {
	uint32_t tid;
	int fd;			  /* schedstat; -1 when the thread has ended */
	int64_t seen_ns;	  /* last look */
	struct sidecar_sample at; /* last recorded; time_ns 0: none yet */
};

struct thread_sampler {
	const char *root; /* prefix before /proc; borrowed */
	uint32_t pid;
	VEC(struct sampled_thread) threads;
	int64_t found_ns; /* when new threads were last looked for; 0: never */
	uint64_t dropped; /* threads and records beyond the limits */
};

/* Nothing is opened yet. A zeroed sampler may be closed. */
void thread_sampler_open(struct thread_sampler *sampler, const char *root, uint32_t pid);
void thread_sampler_close(struct thread_sampler *sampler);

/*
 * One look at all threads; appends to out->samples, ->process_samples (cpu_cnt:
 * CPUs the process may use) and, for new threads, ->threads. Returns 0, -ESRCH
 * when the process has no threads left, -ENOMEM.
 */
_must_check_ int thread_sampler_look(struct thread_sampler *sampler, int64_t now_ns,
				     uint32_t cpu_cnt, struct sidecar *out);
