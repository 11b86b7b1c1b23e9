/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts CUPTI's activity records to events of gputrace.h. Independent of the library and of
 * threads: it gets memory and the function that steps from record to record, whose lengths only
 * CUPTI knows.
 */
#pragma once

#include "agent/gpu/cupti/cupti_abi.h"
#include "agent/gpu/gputrace.h"

#define CUPTI_NAME_SLOTS 8192u /* power of two */
#define CUPTI_CONTEXT_MAX 16u
#define CUPTI_WAIT_MAX 1024u

struct cupti_name {
	uintptr_t key; /* the pointer, which all records of a kernel share; 0: free */
	uint32_t name;
};

struct cupti_reader {
	const struct gputrace_sink *sink;
	cupti_next_fn next;
	int64_t offset_ns; /* added to all times: 0 when CUPTI uses the agent's clock callback */
	/*
	 * Launches of graphs have wrong correlation numbers (CUDA 13.0, from a process's second
	 * session of any tool on): they are dropped, and launches are matched by order.
	 */
	bool graphs_uncorrelated;
	bool graphs_ran; /* in any window of this process */
	struct {
		uint32_t context;
		int32_t device;
	} contexts[CUPTI_CONTEXT_MAX]; /* of which a kernel or copy was seen */
	size_t context_cnt;
	struct {
		uint32_t context;
		struct gputrace_event event;
	} waits[CUPTI_WAIT_MAX]; /* for the GPU, in contexts of which none was seen yet */
	size_t wait_cnt;
	struct cupti_name names[CUPTI_NAME_SLOTS];
};

#define CUPTI_CALL_MAX 1024u /* beyond the numbers of today's calls: 523 and 807 in CUDA 13.0 */

/* Static; NULL: a call that is not recorded. domain: CUPTI_DOMAIN_RUNTIME or _DRIVER. */
const char *cupti_call_name(uint32_t domain, uint32_t call);

/* Forgets names: pointers may have new meanings after CUPTI was detached. */
void cupti_reader_reset(struct cupti_reader *reader);

/* All is read: what still waits for its context's device is lost, and counted. */
void cupti_reader_end(struct cupti_reader *reader);

/* A buffers_read_fn (buffers.h) for a struct cupti_reader; *at is the record read last. */
size_t cupti_reader_read(void *cupti_reader, uint8_t *buffer, size_t valid, void **at, size_t most);
