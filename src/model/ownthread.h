/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PerfTracker's own threads and processes, whose CPU time the kernel counts: no measurement of the
 * job is needed to know it. Names are those of reports, `perftracker status` and /metrics.
 */
#pragma once

#include "base/base.h"

/* enum, name, what it is */
#define OWN_THREAD_LIST(X)                                                                 \
	X(SAMPLER, "sampler", "thread of each worker that samples stacks")                 \
	X(GPU_RECORDS, "gpu-records", "thread of each worker that reads GPU records")      \
	X(GPU_CALLS, "gpu-calls", "thread of each worker that times GPU calls")            \
	X(DAEMON, "daemon", "thread that watches all workers of the host")                 \
	X(METRICS, "metrics", "threads that serve /metrics and the page")                  \
	X(GPUWATCH, "gpuwatch", "thread that asks the GPUs' driver")                       \
	X(SUMMARIZE, "summarize", "processes that make fingerprints or read GPU counters") \
	X(RUN, "run", "process that the user started")

enum own_thread {
#define X(id, name, what) OWN_THREAD_##id,
	OWN_THREAD_LIST(X)
#undef X
		OWN_THREAD_CNT
};

/* CPU time since the job began. */
struct own_cpu {
	int64_t cpu_ns[OWN_THREAD_CNT];
	int64_t rank_ns; /* sum of the times in which workers were watched; 0: none yet */
};

static inline const char *own_thread_name(enum own_thread thread)
{
	static const char *const names[] = {
#define X(id, name, what) [OWN_THREAD_##id] = name,
		OWN_THREAD_LIST(X)
#undef X
	};

	return names[thread];
}

/* CPU time in ms of each second of each rank; a tenth of it is the share of a core in %. */
static inline double own_cpu_ms_per_s(const struct own_cpu *own, int64_t cpu_ns)
{
	return own->rank_ns > 0 ? 1e3 * (double)cpu_ns / (double)own->rank_ns : 0.0;
}

static inline int64_t own_cpu_sum(const struct own_cpu *own)
{
	int64_t sum = 0;

	for (size_t i = 0; i < OWN_THREAD_CNT; i++)
		sum += own->cpu_ns[i];
	return sum;
}
