/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocprofiler-sdk's double: the true SONAMEs (.so.1, and .so.0 for versions before 1.0), names
 * and record layouts, without a GPU. These functions are the job's side and the
 * test's; they are exported beside the SDK's own.
 */
#pragma once

#include <stdint.h>

#define DOUBLE_EXPORT __attribute__((visibility("default")))

/* A ROCm library starts: the tool's function is asked, and its declarations are taken. */
DOUBLE_EXPORT void double_begin(void *configure);
/* Code is loaded. */
DOUBLE_EXPORT void double_symbol(uint64_t kernel, const char *name);
/* Work that has ended: a call and what it launched have one correlation. */
DOUBLE_EXPORT void double_kernel(uint64_t kernel, uint64_t queue, uint64_t correlation);
DOUBLE_EXPORT void double_copy(int operation, uint64_t bytes, uint64_t correlation);
DOUBLE_EXPORT void double_call(const char *name, uint64_t correlation);
DOUBLE_EXPORT void double_end(void); /* the process ends */

/*
 * double_set():
 *	larger		records are so many bytes longer than declared in rocprof_abi.h
 *	stranger	records of unknown kinds and categories come between
 *	broken		each record is followed by one that is too short
 *	refuse		status of rocprofiler_start_context()
 *	dropped		what a buffer's callback says of it
 *	untimed		kernels have no times
 *	version		passed to rocprofiler_configure()
 * double_count(): active (contexts), contexts, services, flushes, blocked (records that found
 * both buffers full), faults.
 */
DOUBLE_EXPORT void double_set(const char *key, int64_t value);
DOUBLE_EXPORT int64_t double_count(const char *key);
DOUBLE_EXPORT const char *double_fault(void); /* the first misuse; "" */
