/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The used parts of CUPTI's binary interface, for CUDA 11 to 13: numbers and types of functions;
 * records are in cupti_layout.h. No header of the toolkit is needed to build; cupti_abi_check.c
 * compares all of it with the real ones where they are installed.
 * Source: cupti_callbacks.h, cupti_activity.h, cupti_version.h; cupti_abi_check.c.
 */
#pragma once

#include "base/base.h"

enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_CONCURRENT_KERNEL = 10, /* KERNEL (3) serializes kernels: never */
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22, /* between devices */
	CUPTI_KIND_SYNCHRONIZATION = 38,
};

enum cupti_attribute {
	CUPTI_ATTR_ZEROED_OUT_BUFFER = 5,
	CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED = 8,
	CUPTI_ATTR_PER_THREAD_BUFFER = 9,
};

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_VIRTUALIZED_DEVICE = 33,
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

#define CUPTI_FLUSH_FORCED 1u
#define CUPTI_THREAD_ID_SYSTEM 1
#define CUPTI_DOMAIN_DRIVER 1
#define CUPTI_DOMAIN_RUNTIME 2
#define CUPTI_DOMAIN_STATE 6
#define CUPTI_STATE_FATAL_ERROR 1u
#define CUPTI_SITE_EXIT 1
#define CUPTI_DRIVER_GET_VERSION 2u /* cuDriverGetVersion */
enum cupti_driver_call {
	CUPTI_DRIVER_BEGIN_CAPTURE = 495,
	CUPTI_DRIVER_BEGIN_CAPTURE_PTSZ = 496,
	CUPTI_DRIVER_END_CAPTURE = 497,
	CUPTI_DRIVER_END_CAPTURE_PTSZ = 498,
	CUPTI_DRIVER_BEGIN_CAPTURE_V2 = 539,
	CUPTI_DRIVER_BEGIN_CAPTURE_V2_PTSZ = 540,
	CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH = 720,
	CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH_PTSZ = 721,
};
#define CUDA_CAPTURE_RELAXED 2 /* CUstreamCaptureMode */
#define CUPTI_OVERHEAD_COMPILER 1u
#define CUPTI_OVERHEAD_SHIFT 16 /* all others are numbered above it */
#define CUPTI_OBJECT_THREAD 2u
#define CUPTI_NO_STREAM UINT32_MAX
#define CUPTI_OLD_SUBSCRIBER_BYTES 64
#define CUPTI_RECORD_BYTES_MAX 216u /* of a requested record, until 13.0 */

/* cuptiGetVersion(): small numbers before CUDA 13, then xxyyzz. */
#define CUPTI_VERSION_12_6 24u
#define CUPTI_VERSION_12_9 27u
#define CUPTI_VERSION_13_0 130000u
#define CUPTI_VERSION_13_1_1 130101u

/* Of cuptiSubscribe_v2(), since CUDA 13. */
struct cupti_subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_name_size;
};

/* What a callback of an API's domain is given: its beginning. */
struct cupti_callback_data {
	uint32_t site;
	const void *unused[2];
	const int *result; /* of the call, at its exit */
};

typedef void (*cupti_callback_fn)(void *data, uint32_t domain, uint32_t call, const void *info);
typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *record_max);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
typedef uint32_t (*cupti_next_fn)(uint8_t *buffer, size_t valid, void **record);
