/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares pmsampling_abi.h with the toolkit's own headers, by the compiler. The program
 * says whether there were some; without it is skipped (77).
 */
#include "collect/host/pmsampling_abi.h"

#include <stdio.h>

#if __has_include(<cupti_profiler_host.h>)
#include <cuda.h>
#include <cupti_profiler_host.h>

#define SAME(ours, field, theirs, their_field)                                          \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) && \
			       sizeof(((struct ours *)0)->field) ==                     \
				       sizeof(((theirs *)0)->their_field),              \
		       #theirs "." #their_field)
#define WHOLE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)

WHOLE(pm_host_open, CUpti_Profiler_Host_Initialize_Params);
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
