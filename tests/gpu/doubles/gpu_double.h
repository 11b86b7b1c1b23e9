/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test orders of the doubles of libcuda (events), libcublas, libcublasLt and libnccl, and
 * asks of them. The GPU has a clock of its own for each queue, which only work moves: times are
 * exact. Misuse that would harm a real job is a fault.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DOUBLE_EXPORT __attribute__((visibility("default")))

/* Work of ns in a queue. */
DOUBLE_EXPORT void double_gpu_work(void *queue, int64_t ns);

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
