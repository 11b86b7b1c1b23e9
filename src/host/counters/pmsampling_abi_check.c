/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares pmsampling_abi.h and pmsampling_target_abi.h with a toolkit's own headers, of CUDA 12.6
 * or later, by the compiler. The program prints whether headers were found; without them the test
 * is skipped (77).
 */
#include "host/counters/pmsampling_target_abi.h"

#include <stdio.h>

#if __has_include(<cupti_profiler_host.h>)
#include <cuda.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <cupti_version.h>

#define SAME(ours, field, theirs, their_field)                                          \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) && \
			       sizeof(((struct ours *)0)->field) ==                     \
				       sizeof(((theirs *)0)->their_field),              \
		       #theirs "." #their_field)
/* A library accepts the sizes of its own and older headers. */
#define ACCEPTED_SIZE(bytes, theirs) _Static_assert((bytes) == theirs##_STRUCT_SIZE, #theirs)
#define WHOLE(ours, theirs) ACCEPTED_SIZE(sizeof(struct ours), theirs)

#if CUPTI_API_VERSION >= 130200
WHOLE(pm_host_open, CUpti_Profiler_Host_Initialize_Params);
SAME(pm_host_open, set, CUpti_Profiler_Host_Initialize_Params, pSinglePassMetricSetName);
#else
ACCEPTED_SIZE(PM_SIZE(pm_host_open, host), CUpti_Profiler_Host_Initialize_Params);
#endif
SAME(pm_host_open, size, CUpti_Profiler_Host_Initialize_Params, structSize);
SAME(pm_host_open, profiler, CUpti_Profiler_Host_Initialize_Params, profilerType);
SAME(pm_host_open, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME(pm_host_open, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
SAME(pm_host_open, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
WHOLE(pm_host_close, CUpti_Profiler_Host_Deinitialize_Params);
SAME(pm_host_close, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
WHOLE(pm_host_chips, CUpti_Profiler_Host_GetSupportedChips_Params);
SAME(pm_host_chips, cnt, CUpti_Profiler_Host_GetSupportedChips_Params, numChips);
SAME(pm_host_chips, names, CUpti_Profiler_Host_GetSupportedChips_Params, ppChipNames);
WHOLE(pm_host_add, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME(pm_host_add, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
SAME(pm_host_add, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SAME(pm_host_add, cnt, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
WHOLE(pm_config_size, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME(pm_config_size, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
SAME(pm_config_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
WHOLE(pm_config_get, CUpti_Profiler_Host_GetConfigImage_Params);
SAME(pm_config_get, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
SAME(pm_config_get, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SAME(pm_config_get, config, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
WHOLE(pm_config_passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME(pm_config_passes, bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
SAME(pm_config_passes, config, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SAME(pm_config_passes, cnt, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
WHOLE(pm_evaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(pm_evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
SAME(pm_evaluate, image, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
SAME(pm_evaluate, image_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
     counterDataImageSize);
SAME(pm_evaluate, idx, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME(pm_evaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME(pm_evaluate, cnt, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME(pm_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
WHOLE(pm_initialize, CUpti_Profiler_Initialize_Params);
WHOLE(pm_chip_name, CUpti_Device_GetChipName_Params);
SAME(pm_chip_name, device, CUpti_Device_GetChipName_Params, deviceIndex);
SAME(pm_chip_name, name, CUpti_Device_GetChipName_Params, pChipName);
WHOLE(pm_availability, CUpti_PmSampling_GetCounterAvailability_Params);
SAME(pm_availability, device, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
SAME(pm_availability, bytes, CUpti_PmSampling_GetCounterAvailability_Params,
     counterAvailabilityImageSize);
SAME(pm_availability, image, CUpti_PmSampling_GetCounterAvailability_Params,
     pCounterAvailabilityImage);
WHOLE(pm_enable, CUpti_PmSampling_Enable_Params);
SAME(pm_enable, device, CUpti_PmSampling_Enable_Params, deviceIndex);
SAME(pm_enable, object, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
WHOLE(pm_order, CUpti_PmSampling_Start_Params);
WHOLE(pm_order, CUpti_PmSampling_Stop_Params);
WHOLE(pm_order, CUpti_PmSampling_Disable_Params);
SAME(pm_order, object, CUpti_PmSampling_Start_Params, pPmSamplingObject);
SAME(pm_order, object, CUpti_PmSampling_Stop_Params, pPmSamplingObject);
SAME(pm_order, object, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
SAME(pm_configure, object, CUpti_PmSampling_SetConfig_Params, pPmSamplingObject);
SAME(pm_configure, config_bytes, CUpti_PmSampling_SetConfig_Params, configSize);
SAME(pm_configure, config, CUpti_PmSampling_SetConfig_Params, pConfig);
SAME(pm_configure, buffer_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
SAME(pm_configure, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
SAME(pm_configure, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
#if CUPTI_API_VERSION > PM_NO_APPEND
WHOLE(pm_configure, CUpti_PmSampling_SetConfig_Params);
SAME(pm_configure, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
_Static_assert((int)PM_KEEP_OLDEST ==
		       (int)CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST,
	       "append");
#else
ACCEPTED_SIZE(PM_SIZE(pm_configure, trigger), CUpti_PmSampling_SetConfig_Params);
#endif
WHOLE(pm_image_size, CUpti_PmSampling_GetCounterDataSize_Params);
SAME(pm_image_size, names, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
SAME(pm_image_size, cnt, CUpti_PmSampling_GetCounterDataSize_Params, numMetrics);
SAME(pm_image_size, samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
SAME(pm_image_size, bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
WHOLE(pm_image_clear, CUpti_PmSampling_CounterDataImage_Initialize_Params);
SAME(pm_image_clear, bytes, CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
SAME(pm_image_clear, image, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);
SAME(pm_decode, image, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
SAME(pm_decode, bytes, CUpti_PmSampling_DecodeData_Params, counterDataImageSize);
SAME(pm_decode, stopped, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
SAME(pm_decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
ACCEPTED_SIZE(PM_SIZE(pm_decode, overflow), CUpti_PmSampling_DecodeData_Params);
WHOLE(pm_image_info, CUpti_PmSampling_GetCounterDataInfo_Params);
SAME(pm_image_info, image, CUpti_PmSampling_GetCounterDataInfo_Params, pCounterDataImage);
SAME(pm_image_info, bytes, CUpti_PmSampling_GetCounterDataInfo_Params, counterDataImageSize);
SAME(pm_image_info, completed, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);
WHOLE(pm_sample_info, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
SAME(pm_sample_info, image, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pCounterDataImage);
SAME(pm_sample_info, idx, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
SAME(pm_sample_info, start, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
SAME(pm_sample_info, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);
_Static_assert((int)PM_EVERY_CYCLES == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL,
	       "trigger");
_Static_assert((int)PM_EVERY_NS == (int)CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL,
	       "trigger");
_Static_assert((int)PM_STOP_OTHER == (int)CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER, "stop");
_Static_assert((int)PM_STOP_FULL == (int)CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL,
	       "stop");
_Static_assert((int)PM_STOP_END == (int)CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS,
	       "stop");
_Static_assert((int)PM_INVALID_OPERATION == (int)CUPTI_ERROR_INVALID_OPERATION, "status");
_Static_assert((int)PM_BUSY == (int)CUPTI_ERROR_HARDWARE_BUSY, "status");
_Static_assert((int)PM_UNSUPPORTED == (int)CUPTI_ERROR_NOT_SUPPORTED, "status");
_Static_assert((int)PM_NO_PERMISSION == (int)CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "status");
_Static_assert(PM_SAMPLING_PROFILER == (int)CUPTI_PROFILER_TYPE_PM_SAMPLING, "profiler");
_Static_assert((int)PM_OK == (int)CUPTI_SUCCESS, "status");
#define CHECKED true
#else
#define CHECKED false
#endif

int main(void)
{
	if (!CHECKED) {
		(void)puts("no cupti_profiler_host.h: nothing compared");
		return 77;
	}
	(void)puts("compared with the toolkit's cupti_profiler_host.h");
	return 0;
}
