/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares cupti_abi.h and cupti_calls.h with the toolkit's own headers, by the
 * compiler. The program says which version that was; without headers it says so and is
 * skipped (77).
 */
#include "collect/gpu/cupti_abi.h"
#include "collect/gpu/cupti_calls.h"
#include "collect/gpu/cupti_layout.h"

#include <stddef.h>
#include <stdio.h>

#if __has_include(<cupti.h>)
#include <cupti.h>

#define SAME(ours, field, theirs, their_field)                                          \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) && \
			       sizeof(((struct ours *)0)->field) ==                     \
				       sizeof(((theirs *)0)->their_field),              \
		       #theirs "." #their_field)
#define EQUAL(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #theirs)
#define WITHIN(ours, theirs) _Static_assert(sizeof(struct ours) <= sizeof(theirs), #theirs)

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 newest_kernel;
typedef CUpti_ActivityMemcpyPtoP4 newest_peer;
typedef CUpti_ActivityOverhead3 newest_overhead;
typedef CUpti_ActivitySynchronization2 newest_sync;
#elif CUPTI_API_VERSION >= 18
typedef CUpti_ActivityKernel8 newest_kernel;
typedef CUpti_ActivityMemcpyPtoP4 newest_peer;
typedef CUpti_ActivityOverhead newest_overhead;
typedef CUpti_ActivitySynchronization newest_sync;
#else
typedef CUpti_ActivityKernel5 newest_kernel;
typedef CUpti_ActivityMemcpyPtoP newest_peer;
typedef CUpti_ActivityOverhead newest_overhead;
typedef CUpti_ActivitySynchronization newest_sync;
#endif
#if CUPTI_API_VERSION >= 17
typedef CUpti_ActivityMemcpy5 newest_memcpy;
typedef CUpti_ActivityMemset4 newest_memset;
#else
typedef CUpti_ActivityMemcpy3 newest_memcpy;
typedef CUpti_ActivityMemset2 newest_memset;
#endif

SAME(cupti_kernel, start, newest_kernel, start);
SAME(cupti_kernel, end, newest_kernel, end);
SAME(cupti_kernel, device, newest_kernel, deviceId);
SAME(cupti_kernel, context, newest_kernel, contextId);
SAME(cupti_kernel, stream, newest_kernel, streamId);
SAME(cupti_kernel, grid[0], newest_kernel, gridX);
SAME(cupti_kernel, grid[2], newest_kernel, gridZ);
SAME(cupti_kernel, block[0], newest_kernel, blockX);
SAME(cupti_kernel, block[2], newest_kernel, blockZ);
SAME(cupti_kernel, correlation, newest_kernel, correlationId);
SAME(cupti_kernel, name, newest_kernel, name);
SAME(cupti_kernel, graph_node, newest_kernel, graphNodeId);
SAME(cupti_kernel, graph, newest_kernel, graphId);
WITHIN(cupti_kernel, newest_kernel);

SAME(cupti_memcpy, copy_kind, newest_memcpy, copyKind);
SAME(cupti_memcpy, from, newest_memcpy, srcKind);
SAME(cupti_memcpy, to, newest_memcpy, dstKind);
SAME(cupti_memcpy, bytes, newest_memcpy, bytes);
SAME(cupti_memcpy, start, newest_memcpy, start);
SAME(cupti_memcpy, end, newest_memcpy, end);
SAME(cupti_memcpy, device, newest_memcpy, deviceId);
SAME(cupti_memcpy, context, newest_memcpy, contextId);
SAME(cupti_memcpy, stream, newest_memcpy, streamId);
SAME(cupti_memcpy, correlation, newest_memcpy, correlationId);
WITHIN(cupti_memcpy, newest_memcpy);

SAME(cupti_memcpy_peer, copy_kind, newest_peer, copyKind);
SAME(cupti_memcpy_peer, bytes, newest_peer, bytes);
SAME(cupti_memcpy_peer, start, newest_peer, start);
SAME(cupti_memcpy_peer, end, newest_peer, end);
SAME(cupti_memcpy_peer, device, newest_peer, deviceId);
SAME(cupti_memcpy_peer, context, newest_peer, contextId);
SAME(cupti_memcpy_peer, stream, newest_peer, streamId);
SAME(cupti_memcpy_peer, correlation, newest_peer, correlationId);
WITHIN(cupti_memcpy_peer, newest_peer);

SAME(cupti_memset, bytes, newest_memset, bytes);
SAME(cupti_memset, start, newest_memset, start);
SAME(cupti_memset, end, newest_memset, end);
SAME(cupti_memset, device, newest_memset, deviceId);
SAME(cupti_memset, context, newest_memset, contextId);
SAME(cupti_memset, stream, newest_memset, streamId);
SAME(cupti_memset, correlation, newest_memset, correlationId);
SAME(cupti_memset, memory, newest_memset, memoryKind);
WITHIN(cupti_memset, newest_memset);

SAME(cupti_sync, type, newest_sync, type);
SAME(cupti_sync, start, newest_sync, start);
SAME(cupti_sync, end, newest_sync, end);
SAME(cupti_sync, correlation, newest_sync, correlationId);
SAME(cupti_sync, context, newest_sync, contextId);
SAME(cupti_sync, stream, newest_sync, streamId);
WITHIN(cupti_sync, newest_sync);

SAME(cupti_api, call, CUpti_ActivityAPI, cbid);
SAME(cupti_api, start, CUpti_ActivityAPI, start);
SAME(cupti_api, end, CUpti_ActivityAPI, end);
SAME(cupti_api, pid, CUpti_ActivityAPI, processId);
SAME(cupti_api, tid, CUpti_ActivityAPI, threadId);
SAME(cupti_api, correlation, CUpti_ActivityAPI, correlationId);
SAME(cupti_api, result, CUpti_ActivityAPI, returnValue);
WITHIN(cupti_api, CUpti_ActivityAPI);

SAME(cupti_overhead, what, newest_overhead, overheadKind);
SAME(cupti_overhead, object, newest_overhead, objectKind);
SAME(cupti_overhead, pid, newest_overhead, objectId.pt.processId);
SAME(cupti_overhead, tid, newest_overhead, objectId.pt.threadId);
SAME(cupti_overhead, start, newest_overhead, start);
SAME(cupti_overhead, end, newest_overhead, end);
WITHIN(cupti_overhead, newest_overhead);

SAME(cupti_callback_data, site, CUpti_CallbackData, callbackSite);
SAME(cupti_callback_data, result, CUpti_CallbackData, functionReturnValue);

EQUAL(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
EQUAL(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
EQUAL(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
EQUAL(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
EQUAL(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
EQUAL(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
EQUAL(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
EQUAL(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
EQUAL(CUPTI_OK, CUPTI_SUCCESS);
EQUAL(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
EQUAL(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
EQUAL(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
EQUAL(CUPTI_VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
EQUAL(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
EQUAL(CUPTI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
EQUAL(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
EQUAL(CUPTI_ATTR_ZEROED_OUT_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
EQUAL(CUPTI_ATTR_PER_THREAD_BUFFER, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
EQUAL(CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
EQUAL(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
EQUAL(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
EQUAL(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
EQUAL(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
EQUAL(CUPTI_DOMAIN_STATE, CUPTI_CB_DOMAIN_STATE);
EQUAL(CUPTI_STATE_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);
EQUAL(CUPTI_SITE_EXIT, CUPTI_API_EXIT);
EQUAL(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
EQUAL(CUPTI_NO_STREAM, (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE);
EQUAL(CUPTI_DRIVER_GET_VERSION, CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz);
EQUAL(CUPTI_DRIVER_END_CAPTURE, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture);
EQUAL(CUPTI_DRIVER_END_CAPTURE_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_V2, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_V2_PTSZ, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz);
EQUAL(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
#if CUPTI_API_VERSION >= 22 /* CUDA 12.3 */
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH_PTSZ,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz);
#endif

#if CUPTI_API_VERSION >= 130000
SAME(cupti_subscriber_params, size, CUpti_SubscriberParams, structSize);
SAME(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
SAME(cupti_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(cupti_subscriber_params, old_name_size, CUpti_SubscriberParams, oldSubscriberSize);
EQUAL(sizeof(struct cupti_subscriber_params), CUpti_SubscriberParams_STRUCT_SIZE);
EQUAL(CUPTI_OLD_SUBSCRIBER_BYTES, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#endif

/* Numbers of calls are compared with the names that the library has for them: see main(). */
#define HAVE_HEADERS 1
#endif

int main(void)
{
#ifdef HAVE_HEADERS
	printf("compared with CUPTI's headers of version %d\n", CUPTI_API_VERSION);
	return 0;
#else
	printf("skipped: no cupti.h (CUDA's toolkit) is installed\n");
	return 77;
#endif
}
