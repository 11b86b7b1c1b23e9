/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares rocprof_abi.h with ROCm's own headers, by the compiler, where they are installed;
 * without them the test is skipped (77).
 */
#include "agent/gpu/rocprof/rocprof_abi.h"

#include <stdio.h>

#if __has_include(<rocprofiler-sdk/rocprofiler.h>) && __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#define SAME(ours, field, theirs, their_field)                                          \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) && \
			       sizeof(((struct ours *)0)->field) ==                     \
				       sizeof(((theirs *)0)->their_field),              \
		       #theirs "." #their_field)
#define EQUAL(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #theirs)

typedef rocprofiler_buffer_tracing_kernel_dispatch_record_t kernel;
typedef rocprofiler_buffer_tracing_memory_copy_record_t copy;
typedef rocprofiler_buffer_tracing_hip_api_record_t api;
typedef rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t symbol;

SAME(rocprof_kernel, record.size, kernel, size);
SAME(rocprof_kernel, record.kind, kernel, kind);
SAME(rocprof_kernel, record.correlation, kernel, correlation_id.internal);
SAME(rocprof_kernel, start, kernel, start_timestamp);
SAME(rocprof_kernel, end, kernel, end_timestamp);
SAME(rocprof_kernel, agent, kernel, dispatch_info.agent_id);
SAME(rocprof_kernel, queue, kernel, dispatch_info.queue_id);
SAME(rocprof_kernel, kernel, kernel, dispatch_info.kernel_id);
SAME(rocprof_kernel, grid, kernel, dispatch_info.grid_size);
SAME(rocprof_copy_record, record.operation, copy, operation);
SAME(rocprof_copy_record, start, copy, start_timestamp);
SAME(rocprof_copy_record, end, copy, end_timestamp);
SAME(rocprof_copy_record, to, copy, dst_agent_id);
SAME(rocprof_copy_record, from, copy, src_agent_id);
SAME(rocprof_copy_record, bytes, copy, bytes);
SAME(rocprof_kernel_symbol, kernel, symbol, kernel_id);
SAME(rocprof_kernel_symbol, name, symbol, kernel_name);
SAME(rocprof_header, category, rocprofiler_record_header_t, category);
SAME(rocprof_header, payload, rocprofiler_record_header_t, payload);
SAME(rocprof_agent, id, rocprofiler_agent_v0_t, id);
SAME(rocprof_agent, type, rocprofiler_agent_v0_t, type);
SAME(rocprof_agent, gfx_version, rocprofiler_agent_v0_t, gfx_target_version);
SAME(rocprof_client, name, rocprofiler_client_id_t, name);
SAME(rocprof_configuration, initialize, rocprofiler_tool_configure_result_t, initialize);
SAME(rocprof_configuration, data, rocprofiler_tool_configure_result_t, tool_data);
#if ROCPROFILER_VERSION >= 10000
SAME(rocprof_api, start, api, start_timestamp);
SAME(rocprof_api, thread, api, thread_id);
SAME(rocprof_callback, payload, rocprofiler_callback_tracing_record_t, payload);
#else
SAME(rocprof_api_0, start, api, start_timestamp);
SAME(rocprof_api_0, thread, api, thread_id);
SAME(rocprof_callback_0, payload, rocprofiler_callback_tracing_record_t, payload);
#endif

EQUAL(ROCPROF_CONTEXT_CONFLICT, ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT);
EQUAL(ROCPROF_BUFFER_HIP_RUNTIME_API, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API);
EQUAL(ROCPROF_BUFFER_MEMORY_COPY, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY);
EQUAL(ROCPROF_BUFFER_KERNEL_DISPATCH, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
EQUAL(ROCPROF_COPY_DEVICE_TO_DEVICE, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE);
EQUAL(ROCPROF_CATEGORY_TRACING, ROCPROFILER_BUFFER_CATEGORY_TRACING);
EQUAL(ROCPROF_CALLBACK_CODE_OBJECT, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
EQUAL(ROCPROF_CODE_OBJECT_KERNEL_SYMBOL, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
EQUAL(ROCPROF_PHASE_LOAD, ROCPROFILER_CALLBACK_PHASE_LOAD);
EQUAL(ROCPROF_POLICY_LOSSLESS, ROCPROFILER_BUFFER_POLICY_LOSSLESS);
EQUAL(ROCPROF_AGENT_GPU, ROCPROFILER_AGENT_TYPE_GPU);
EQUAL(ROCPROF_AGENT_VERSION, ROCPROFILER_AGENT_INFO_VERSION_0);

int main(void)
{
	printf("the same as in rocprofiler-sdk %d\n", ROCPROFILER_VERSION);
	return 0;
}
#else
int main(void)
{
	printf("no headers of rocprofiler-sdk: not compared\n");
	return 77;
}
#endif
