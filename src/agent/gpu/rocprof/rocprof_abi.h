/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The used parts of rocprofiler-sdk's binary interface, versions 0.5 to 1.x (ROCm 6.3 on): numbers
 * and the functions that are looked up; records are in rocprof_layout.h. Handles are structs of one
 * 64-bit number there and numbers here, which are passed alike.
 * Source: rocprofiler-sdk's headers; rocprof_abi_check.c.
 */
#pragma once

#include "agent/gpu/rocprof/rocprof_layout.h"

/* rocprofiler_configure()'s version: 10000 * major + 100 * minor + patch. */
#define ROCPROF_VERSION_OLDEST 500u
#define ROCPROF_VERSION_2 20000u /* unknown to this back end */

enum rocprof_status {
	ROCPROF_OK = 0,
	ROCPROF_CONTEXT_NOT_STARTED = 11,
	ROCPROF_CONTEXT_CONFLICT = 12,
};

enum rocprof_buffer_kind {
	ROCPROF_BUFFER_HIP_RUNTIME_API = 5,
	ROCPROF_BUFFER_MEMORY_COPY = 10,
	ROCPROF_BUFFER_KERNEL_DISPATCH = 11,
};

enum rocprof_copy {
	ROCPROF_COPY_HOST_TO_HOST = 1,
	ROCPROF_COPY_HOST_TO_DEVICE,
	ROCPROF_COPY_DEVICE_TO_HOST,
	ROCPROF_COPY_DEVICE_TO_DEVICE,
};

#define ROCPROF_CATEGORY_TRACING 1u
#define ROCPROF_CALLBACK_CODE_OBJECT 10
#define ROCPROF_CODE_OBJECT_KERNEL_SYMBOL 2
#define ROCPROF_PHASE_LOAD 1u
#define ROCPROF_POLICY_LOSSLESS 2
#define ROCPROF_AGENT_GPU 2u
#define ROCPROF_AGENT_VERSION 1

struct rocprof_client {
	size_t size;
	const char *name;
	uint32_t handle;
};

typedef void (*rocprof_finalize_fn)(struct rocprof_client client);

struct rocprof_configuration {
	size_t size;
	int (*initialize)(rocprof_finalize_fn finalize, void *data);
	void (*finalize)(void *data);
	void *data;
};

typedef void (*rocprof_buffer_fn)(uint64_t context, uint64_t buffer,
				  struct rocprof_header **headers, size_t cnt, void *data,
				  uint64_t dropped);
typedef void (*rocprof_callback_fn)(struct rocprof_callback record, void *user, void *data);
typedef int (*rocprof_operation_fn)(int kind, int32_t operation, void *data);
typedef int (*rocprof_agents_fn)(int version, const void **agents, size_t cnt, void *data);

struct rocprof_functions {
	int (*is_initialized)(int *ret);
	int (*create_context)(uint64_t *ret);
	int (*start_context)(uint64_t context);
	int (*stop_context)(uint64_t context);
	int (*create_buffer)(uint64_t context, size_t size, size_t watermark, int policy,
			     rocprof_buffer_fn callback, void *data, uint64_t *ret);
	int (*flush_buffer)(uint64_t buffer);
	int (*trace_buffered)(uint64_t context, int kind, const int32_t *operations, size_t cnt,
			      uint64_t buffer);
	int (*trace_called)(uint64_t context, int kind, const int32_t *operations, size_t cnt,
			    rocprof_callback_fn callback, void *data);
	int (*operations)(int kind, rocprof_operation_fn callback, void *data);
	int (*operation_name)(int kind, int32_t operation, const char **ret, uint64_t *ret_len);
	int (*agents)(int version, rocprof_agents_fn callback, size_t size, void *data);
	int (*clock)(uint64_t *ret);
};
