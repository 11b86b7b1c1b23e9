/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Always on, without a profiling library: which calls of a GPU's libraries a job makes. Every
 * call is counted by its shape, one in GPUCALLS_EVERY of a shape is timed (gputimer.h). Shapes
 * beyond a thousand are counted together, and not timed. Groups of matrices, whose shapes are
 * hardly ever the same again, are known by how many groups they are.
 *
 * The calls come from functions of the GPU's own names that the library exports
 * (gpucalls_cuda.c). They are reached where the library was preloaded: others bind the names to
 * it then, and it calls the next function of the name. Where it is only imported nothing is
 * seen, nor are calls of those who look the names up in the GPU's libraries themselves (CUDA's
 * own runtime in its libraries, Triton, JAX) or have them linked in.
 *
 * Off unless PT_ENV_GPU_TIMES asks for it. Off, in forked children and before a daemon is there a
 * call still comes through here: it costs finding the next function (realcall.h), a load and a jump.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define PT_ENV_GPU_TIMES "PERFTRACKER_GPU_TIMES" /* "1": yes */

#define GPUCALLS_EVERY 64u
#define GPUCALLS_FIRST 3u /* of a shape: those before it load code and choose among kernels */

/* One call. m and groups 0: no matrix multiplication. */
struct gpucall {
	const char *name;
	const void *what;			  /* a kernel, which has no shape; else NULL */
	const char *(*name_of)(const void *what); /* NULL: name will do. Asked when it is timed */
	uint64_t m, n, k, batch;
	uint16_t type;	 /* CUDA's number */
	uint32_t groups; /* 0: all matrices have one shape. Else m, n and k are 0, batch all */
	double flop;	 /* of groups */
};

/* Reads the environment. Rare; before gpucalls_watch(). */
void gpucalls_open(void);

bool gpucalls_are_wanted(void);

/* Any of the rare threads. Starts the helper at first. */
void gpucalls_watch(bool on);

extern _Atomic bool gpucalls_on;

static inline bool gpucalls_are_on(void)
{
	return atomic_load_explicit(&gpucalls_on, memory_order_relaxed);
}

/*
 * Around the real call, if they are on: counts it unless it is part of another, and times it when
 * it is its turn. queue_of(handle) is asked only then; false: unknown. Both on one thread.
 */
typedef bool gpucalls_queue_of(void *handle, void **ret);
uint64_t gpucalls_begin(const struct gpucall *call, gpucalls_queue_of *queue_of, void *handle);
void gpucalls_end(const struct gpucall *call, uint64_t timer);

void gpucalls_forked(void);
