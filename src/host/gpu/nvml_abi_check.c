/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles only if nvml_abi.h agrees with the header, where the compiler finds one (CPATH).
 */
#include "host/gpu/nvml_abi.h"

#if __has_include(<nvml.h>)
#include <nvml.h>

#define SAME(ours, our_field, theirs, their_field)                                 \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), \
		       #ours "." #our_field)

_Static_assert(sizeof(struct nvml_field) == sizeof(nvmlFieldValue_t), "field");
SAME(struct nvml_field, id, nvmlFieldValue_t, fieldId);
SAME(struct nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME(struct nvml_field, type, nvmlFieldValue_t, valueType);
SAME(struct nvml_field, status, nvmlFieldValue_t, nvmlReturn);
SAME(struct nvml_field, value, nvmlFieldValue_t, value);
_Static_assert(sizeof(struct nvml_event) == sizeof(nvmlEventData_t), "event");
SAME(struct nvml_event, type, nvmlEventData_t, eventType);
SAME(struct nvml_event, data, nvmlEventData_t, eventData);
_Static_assert(sizeof(struct nvml_process) == sizeof(nvmlProcessInfo_t), "process");
SAME(struct nvml_process, pid, nvmlProcessInfo_t, pid);
#ifdef NVML_GPM_METRICS_GET_VERSION /* CUDA 11.8 */
_Static_assert((int)NVML_VERSION_MISMATCH == (int)NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "status");
_Static_assert(sizeof(struct nvml_gpm_support) == sizeof(nvmlGpmSupport_t), "support");
SAME(struct nvml_gpm_support, supported, nvmlGpmSupport_t, isSupportedDevice);
_Static_assert(sizeof(struct nvml_gpm_metric) == sizeof(nvmlGpmMetric_t), "metric");
SAME(struct nvml_gpm_metric, id, nvmlGpmMetric_t, metricId);
SAME(struct nvml_gpm_metric, status, nvmlGpmMetric_t, nvmlReturn);
SAME(struct nvml_gpm_metric, value, nvmlGpmMetric_t, value);
SAME(struct nvml_gpm_metrics, cnt, nvmlGpmMetricsGet_t, numMetrics);
SAME(struct nvml_gpm_metrics, before, nvmlGpmMetricsGet_t, sample1);
SAME(struct nvml_gpm_metrics, after, nvmlGpmMetricsGet_t, sample2);
SAME(struct nvml_gpm_metrics, metrics, nvmlGpmMetricsGet_t, metrics);
_Static_assert(sizeof(struct nvml_gpm_metrics) >= sizeof(nvmlGpmMetricsGet_t), "room");
_Static_assert(NVML_GPM_VERSION == NVML_GPM_METRICS_GET_VERSION, "version");
#endif

_Static_assert((int)NVML_OK == (int)NVML_SUCCESS, "status");
_Static_assert((int)NVML_NOT_SUPPORTED == (int)NVML_ERROR_NOT_SUPPORTED, "status");
_Static_assert((int)NVML_NO_PERMISSION == (int)NVML_ERROR_NO_PERMISSION, "status");
_Static_assert((int)NVML_INSUFFICIENT_SIZE == (int)NVML_ERROR_INSUFFICIENT_SIZE, "status");
_Static_assert((int)NVML_GPU_LOST == (int)NVML_ERROR_GPU_IS_LOST, "status");
_Static_assert((int)NVML_TYPE_DOUBLE == (int)NVML_VALUE_TYPE_DOUBLE, "type");
_Static_assert((int)NVML_TYPE_UINT == (int)NVML_VALUE_TYPE_UNSIGNED_INT, "type");
_Static_assert((int)NVML_TYPE_ULONGLONG == (int)NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, "type");
_Static_assert((int)NVML_TYPE_LONGLONG == (int)NVML_VALUE_TYPE_SIGNED_LONG_LONG, "type");
_Static_assert(NVML_SM_CLOCK == (int)NVML_CLOCK_SM, "clock");
_Static_assert(NVML_MEMORY_CLOCK == (int)NVML_CLOCK_MEM, "clock");
_Static_assert(NVML_EVENT_XID == nvmlEventTypeXidCriticalError, "event");
#define CHECKED true
#else
#define CHECKED false
#endif

/* Whether there was a header; read by nvml_test.c. */
extern const bool nvml_abi_checked;
const bool nvml_abi_checked = CHECKED;
