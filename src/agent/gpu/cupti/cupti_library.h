/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcupti and libcuda that the CUPTI back end calls, found at run
 * time. The copy of libcupti that the process has mapped is used first: a second
 * one beside it collides with the first. Never unloaded.
 * Source: cupti_callbacks.h, cupti_activity.h, cuda.h.
 */
#pragma once

#include "agent/gpu/cupti/cupti_abi.h"
#include "agent/gpu/gputrace.h"

#define CUDA_DEVICE_MAX 16

/* Of libcuda.so.1, whose results are 0 on success. */
struct cuda_functions {
	int (*device_count)(int *ret);
	int (*device_get)(int *ret, int ordinal);
	int (*device_name)(char *ret, int len, int device);
	int (*context_state)(int device, unsigned *ret_flags, int *ret_active);
	int (*context_current)(void **ret);
	int (*driver_version)(int *ret);
	int (*memory_info)(size_t *ret_free, size_t *ret_total);
	int (*capture_mode)(int *mode); /* swaps the calling thread's; may be missing */
};

/* Of libcupti; those in the second part may be missing in a version. */
struct cupti_functions {
	uint32_t (*get_version)(uint32_t *ret);
	uint32_t (*subscribe)(void **ret, cupti_callback_fn callback, void *data);
	uint32_t (*unsubscribe)(void *subscriber);
	uint32_t (*enable_callback)(uint32_t enable, void *subscriber, uint32_t domain,
				    uint32_t call);
	uint32_t (*register_buffers)(cupti_request_fn request, cupti_complete_fn complete);
	uint32_t (*enable)(int kind);
	uint32_t (*disable)(int kind);
	uint32_t (*flush_all)(uint32_t flags);
	uint32_t (*finalize)(void);
	uint32_t (*set_attribute)(int attribute, size_t *size, void *value);
	uint32_t (*dropped)(void *context, uint32_t stream, size_t *ret);
	cupti_next_fn next_record;

	uint32_t (*subscribe_v2)(void **ret, cupti_callback_fn callback, void *data,
				 struct cupti_subscriber_params *params);
	uint32_t (*set_thread_id_type)(int type);
	uint32_t (*register_clock)(uint64_t (*clock)(void));
	uint32_t (*enable_runtime_call)(uint32_t call, uint8_t enable);
	uint32_t (*enable_driver_call)(uint32_t call, uint8_t enable);
	uint32_t (*enable_all_syncs)(uint8_t enable);
	uint32_t (*flush_period)(uint32_t ms);
};

/* Returns 0, -ENOENT when the process hasn't mapped libcuda, or -ENOTSUP with why. */
_must_check_ int cuda_find(struct cuda_functions *ret, char ret_why[static GPUTRACE_WHY_MAX]);

/* Returns 0 or -ENOTSUP with why. */
_must_check_ int cupti_find(struct cupti_functions *ret, char ret_why[static GPUTRACE_WHY_MAX]);

/* Whether the process has a CUDA context: false if it only loaded CUDA. */
bool cuda_is_in_use(const struct cuda_functions *cuda);

/* Writes the reason for a failed call of CUPTI. Returns -ENOTSUP. */
int cupti_explain(uint32_t result, const char *call, char ret_why[static GPUTRACE_WHY_MAX]);
