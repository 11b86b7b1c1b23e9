/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts a job's calls of GPU libraries all the time, without a profiling library. Every call is
 * counted by its shape, one in GPUCALLS_EVERY of a shape is timed (gputimer.h). Shapes beyond a
 * thousand are counted together, and not timed. Grouped calls, whose shapes rarely repeat, are
 * identified by their number of groups.
 *
 * The calls arrive in exported functions that have the names of the GPU libraries' functions
 * (gpucalls_cuda.c). If the agent is preloaded, the dynamic linker binds those names to it, and it
 * calls the next function of the name. If it is only imported it sees no calls. Calls of libraries
 * that look the names up in the GPU's libraries themselves (CUDA's own libraries, Triton, JAX) or
 * link them statically are never seen.
 *
 * Off unless PT_ENV_GPU_TIMES asks for it. While it is off, in forked children and before a daemon
 * is connected, a call still passes through: it costs finding the next function (realcall.h), a
 * load and a jump.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define PT_ENV_GPU_TIMES "PERFTRACKER_GPU_TIMES" /* "1": yes */

#define GPUCALLS_EVERY 64u
#define GPUCALLS_FIRST 3u /* of a shape: earlier calls load code and select kernels */

/* One call. m and groups 0: no matrix multiplication. */
struct gpucall {
	const char *name;
	const void *what; /* a kernel, which has no shape; NULL for matrix multiplications */
	/* Called when the call is timed; NULL: use name. */
	const char *(*name_of)(const void *what);
	uint64_t m, n, k, batch;
	uint16_t type;	 /* CUDA's number */
	uint32_t groups; /* 0: all matrices have one shape. Else m, n and k are 0, batch all */
	double flop;	 /* of groups */
};

/* Reads the environment. Rare; before gpucalls_watch(). */
void gpucalls_open(void);

bool gpucalls_are_wanted(void);

/* From rare code paths. The first call starts the helper thread. */
void gpucalls_watch(bool on);

extern _Atomic bool gpucalls_on;

static inline bool gpucalls_are_on(void)
{
	return atomic_load_explicit(&gpucalls_on, memory_order_relaxed);
}

/*
 * Around the real call, if counting is on: counts it unless it is nested in another counted call,
 * and times each GPUCALLS_EVERY-th. queue_of(handle) is called for timed calls only; false: unknown
 * queue. Both on one thread.
 */
typedef bool gpucalls_queue_of(void *handle, void **ret);
uint64_t gpucalls_begin(const struct gpucall *call, gpucalls_queue_of *queue_of, void *handle);
void gpucalls_end(const struct gpucall *call, uint64_t timer);

void gpucalls_forked(void);
