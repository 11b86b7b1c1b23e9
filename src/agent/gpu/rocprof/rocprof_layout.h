/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How rocprofiler-sdk's records begin, versions 0.5 to 1.x. They begin with their size, and
 * versions only append to them, except that the correlation of calls and callbacks grew in the
 * middle with 1.0.
 * Source: rocprofiler-sdk's buffer_tracing.h; rocprof_abi_check.c.
 */
#pragma once

#include "base/base.h"

struct rocprof_header {
	uint32_t category, kind;
	void *payload;
};

struct rocprof_record {
	uint64_t size;
	uint32_t kind;
	int32_t operation;
	uint64_t correlation, correlation_external;
};

struct rocprof_kernel {
	struct rocprof_record record;
	uint64_t thread, start, end;
	uint64_t dispatch_size, agent, queue, kernel, dispatch;
	uint32_t private_bytes, group_bytes;
	uint32_t workgroup[3], grid[3]; /* the grid is in work-items */
};

struct rocprof_copy_record {
	struct rocprof_record record;
	uint64_t thread, start, end;
	uint64_t to, from; /* agents */
	uint64_t bytes;
};

struct rocprof_api {
	struct rocprof_record record;
	uint64_t ancestor;
	uint64_t start, end, thread;
};

/* Before 1.0. */
struct rocprof_api_0 {
	struct rocprof_record record;
	uint64_t start, end, thread;
};

/* Passed by value, on the stack: read up to what its version has. */
struct rocprof_callback {
	uint64_t context, thread, correlation, correlation_external, ancestor;
	uint32_t kind;
	int32_t operation;
	uint32_t phase;
	void *payload;
};

struct rocprof_callback_0 {
	uint64_t context, thread, correlation, correlation_external;
	uint32_t kind;
	int32_t operation;
	uint32_t phase;
	void *payload;
};

struct rocprof_kernel_symbol {
	uint64_t size, kernel, code_object;
	const char *name;
};

struct rocprof_agent {
	uint64_t size, id;
	uint32_t type;
	uint32_t unused[20];
	uint32_t gfx_version; /* 90402: gfx942 */
};
