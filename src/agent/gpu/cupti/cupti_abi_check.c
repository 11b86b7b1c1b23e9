/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares cupti_abi.h and cupti_calls.h with the toolkit's own headers, by the compiler. The
 * program prints the version; without headers the test is skipped (77).
 */
#include "agent/gpu/cupti/cupti_abi.h"
#include "agent/gpu/cupti/cupti_calls.h"
#include "agent/gpu/cupti/cupti_layout.h"

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
/* Records are counted by their length where they are discarded, which is before CUDA 12.9. */
#define WITHIN(ours, theirs)                                               \
	_Static_assert(sizeof(struct ours) <= sizeof(theirs) &&            \
			       (CUPTI_API_VERSION >= CUPTI_VERSION_12_9 || \
				sizeof(theirs) <= CUPTI_RECORD_BYTES_MAX), \
		       #theirs)

/*
 * Records of each version that the headers have: tests/gpu/abi_test.py names them all. Else
 * those that all headers since CUDA 11.1 have.
 */
#ifndef KERNELS
#define KERNELS(X) X(CUpti_ActivityKernel5)
#define MEMCPYS(X) X(CUpti_ActivityMemcpy3)
#define PEERS(X) X(CUpti_ActivityMemcpyPtoP)
#define MEMSETS(X) X(CUpti_ActivityMemset2)
#define OVERHEADS(X) X(CUpti_ActivityOverhead)
#define SYNCS(X) X(CUpti_ActivitySynchronization)
#define APIS(X) X(CUpti_ActivityAPI)
#endif

#define KERNEL(theirs)                                          \
	SAME(cupti_kernel, start, theirs, start);               \
	SAME(cupti_kernel, end, theirs, end);                   \
	SAME(cupti_kernel, device, theirs, deviceId);           \
	SAME(cupti_kernel, context, theirs, contextId);         \
	SAME(cupti_kernel, stream, theirs, streamId);           \
	SAME(cupti_kernel, grid[0], theirs, gridX);             \
	SAME(cupti_kernel, grid[2], theirs, gridZ);             \
	SAME(cupti_kernel, block[0], theirs, blockX);           \
	SAME(cupti_kernel, block[2], theirs, blockZ);           \
	SAME(cupti_kernel, correlation, theirs, correlationId); \
	SAME(cupti_kernel, name, theirs, name);                 \
	SAME(cupti_kernel, graph_node, theirs, graphNodeId);    \
	SAME(cupti_kernel, graph, theirs, graphId);             \
	WITHIN(cupti_kernel, theirs);
KERNELS(KERNEL)

#define MEMCPY(theirs)                                          \
	SAME(cupti_memcpy, copy_kind, theirs, copyKind);        \
	SAME(cupti_memcpy, from, theirs, srcKind);              \
	SAME(cupti_memcpy, to, theirs, dstKind);                \
	SAME(cupti_memcpy, bytes, theirs, bytes);               \
	SAME(cupti_memcpy, start, theirs, start);               \
	SAME(cupti_memcpy, end, theirs, end);                   \
	SAME(cupti_memcpy, device, theirs, deviceId);           \
	SAME(cupti_memcpy, context, theirs, contextId);         \
	SAME(cupti_memcpy, stream, theirs, streamId);           \
	SAME(cupti_memcpy, correlation, theirs, correlationId); \
	WITHIN(cupti_memcpy, theirs);
MEMCPYS(MEMCPY)

#define PEER(theirs)                                                 \
	SAME(cupti_memcpy_peer, copy_kind, theirs, copyKind);        \
	SAME(cupti_memcpy_peer, bytes, theirs, bytes);               \
	SAME(cupti_memcpy_peer, start, theirs, start);               \
	SAME(cupti_memcpy_peer, end, theirs, end);                   \
	SAME(cupti_memcpy_peer, device, theirs, deviceId);           \
	SAME(cupti_memcpy_peer, context, theirs, contextId);         \
	SAME(cupti_memcpy_peer, stream, theirs, streamId);           \
	SAME(cupti_memcpy_peer, correlation, theirs, correlationId); \
	WITHIN(cupti_memcpy_peer, theirs);
PEERS(PEER)

#define MEMSET(theirs)                                          \
	SAME(cupti_memset, bytes, theirs, bytes);               \
	SAME(cupti_memset, start, theirs, start);               \
	SAME(cupti_memset, end, theirs, end);                   \
	SAME(cupti_memset, device, theirs, deviceId);           \
	SAME(cupti_memset, context, theirs, contextId);         \
	SAME(cupti_memset, stream, theirs, streamId);           \
	SAME(cupti_memset, correlation, theirs, correlationId); \
	SAME(cupti_memset, memory, theirs, memoryKind);         \
	WITHIN(cupti_memset, theirs);
MEMSETS(MEMSET)

#define SYNC(theirs)                                          \
	SAME(cupti_sync, type, theirs, type);                 \
	SAME(cupti_sync, start, theirs, start);               \
	SAME(cupti_sync, end, theirs, end);                   \
	SAME(cupti_sync, correlation, theirs, correlationId); \
	SAME(cupti_sync, context, theirs, contextId);         \
	SAME(cupti_sync, stream, theirs, streamId);           \
	WITHIN(cupti_sync, theirs);
SYNCS(SYNC)

#define API(theirs)                                          \
	SAME(cupti_api, call, theirs, cbid);                 \
	SAME(cupti_api, start, theirs, start);               \
	SAME(cupti_api, end, theirs, end);                   \
	SAME(cupti_api, pid, theirs, processId);             \
	SAME(cupti_api, tid, theirs, threadId);              \
	SAME(cupti_api, correlation, theirs, correlationId); \
	SAME(cupti_api, result, theirs, returnValue);        \
	WITHIN(cupti_api, theirs);
APIS(API)

#define OVERHEAD(theirs)                                          \
	SAME(cupti_overhead, what, theirs, overheadKind);         \
	SAME(cupti_overhead, object, theirs, objectKind);         \
	SAME(cupti_overhead, pid, theirs, objectId.pt.processId); \
	SAME(cupti_overhead, tid, theirs, objectId.pt.threadId);  \
	SAME(cupti_overhead, start, theirs, start);               \
	SAME(cupti_overhead, end, theirs, end);                   \
	WITHIN(cupti_overhead, theirs);
OVERHEADS(OVERHEAD)

EQUAL(CUPTI_OVERHEAD_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
EQUAL(3 << CUPTI_OVERHEAD_SHIFT, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);

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
EQUAL(CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
EQUAL(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
EQUAL(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
EQUAL(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
EQUAL(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
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
/* What older versions lack they refuse, which costs a window nothing but that. */
#if CUPTI_API_VERSION >= 20 /* CUDA 12.2 */
EQUAL(CUPTI_DOMAIN_STATE, CUPTI_CB_DOMAIN_STATE);
EQUAL(CUPTI_STATE_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);
#endif
#if CUPTI_API_VERSION >= 21 /* CUDA 12.3 */
EQUAL(CUPTI_ATTR_PER_THREAD_BUFFER, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph);
EQUAL(CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH_PTSZ,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz);
#endif

#if CUPTI_API_VERSION >= 130000
SAME(cupti_subscriber_params, size, CUpti_SubscriberParams, structSize);
SAME(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
SAME(cupti_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(cupti_subscriber_params, old_name_size, CUpti_SubscriberParams, oldSubscriberSize);
/* Later versions append; the size passed in selects the known version. */
#if CUPTI_API_VERSION >= 130200
EQUAL(sizeof(struct cupti_subscriber_params),
      offsetof(CUpti_SubscriberParams, allowMultipleSubscribers));
#else
EQUAL(sizeof(struct cupti_subscriber_params), CUpti_SubscriberParams_STRUCT_SIZE);
#endif
EQUAL(CUPTI_OLD_SUBSCRIBER_BYTES, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#endif

/* Numbers of calls are compared with their names by tests/gpu/abi_test.py. */
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
