/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test orders of the doubles of libcuda, libcublas, libcublasLt and libnccl, and asks of
 * them. In libcuda_events.c the GPU has a clock of its own for each queue, which only work moves,
 * and misuse that would harm a real job is a fault; in libcuda_streams.c it works in real time.
 */
#pragma once

#include "double.h"

#include <stdbool.h>
#include <stdint.h>

#define DOUBLE_COPY_BYTES_PER_NS 20

/* A kernel of libcuda_streams.c. */
struct double_function {
	const char *name;
	int64_t ns;
};

/* Work of ns in a queue; a collective, see double_collective(). */
DOUBLE_EXPORT void double_gpu_work(void *queue, int64_t ns);
DOUBLE_EXPORT void double_gpu_collective(const char *name, void *queue, int64_t ns,
					 const struct double_group *groups, size_t cnt);

/* A capture of the queue begins or ends: "global", so that others may not ask meanwhile. */
DOUBLE_EXPORT void double_gpu_capture(void *queue, bool on);

/* Held: nothing that was recorded comes to pass. */
DOUBLE_EXPORT void double_gpu_hold(bool on);

/* From now on calls of this function of the driver fail so; 0: they don't. */
DOUBLE_EXPORT void double_gpu_fail(const char *function, int error);

/* The calling thread's context; NULL: none. */
DOUBLE_EXPORT void double_gpu_context(void *context);

/* "records", "queries", "launches", "created": calls so far. */
DOUBLE_EXPORT int64_t double_gpu_count(const char *what);

/* The first misuse; "". */
DOUBLE_EXPORT const char *double_gpu_fault(void);
