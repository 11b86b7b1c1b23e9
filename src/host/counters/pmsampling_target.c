/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/pmsampling_target.h"

#include "base/symbols.h"

const char *pm_target_find(void *handle, struct pm_target *ret)
{
	const struct symbol table[] = {
		{ &ret->version, "cuptiGetVersion" },
		{ &ret->initialize, "cuptiProfilerInitialize" },
		{ &ret->deinitialize, "cuptiProfilerDeInitialize" },
		{ &ret->chip_name, "cuptiDeviceGetChipName" },
		{ &ret->availability, "cuptiPmSamplingGetCounterAvailability" },
		{ &ret->enable, "cuptiPmSamplingEnable" },
		{ &ret->disable, "cuptiPmSamplingDisable" },
		{ &ret->configure, "cuptiPmSamplingSetConfig" },
		{ &ret->start, "cuptiPmSamplingStart" },
		{ &ret->stop, "cuptiPmSamplingStop" },
		{ &ret->image_size, "cuptiPmSamplingGetCounterDataSize" },
		{ &ret->image_clear, "cuptiPmSamplingCounterDataImageInitialize" },
		{ &ret->decode, "cuptiPmSamplingDecodeData" },
		{ &ret->image_info, "cuptiPmSamplingGetCounterDataInfo" },
		{ &ret->sample_info, "cuptiPmSamplingCounterDataGetSampleInfo" },
		{ &ret->evaluate, "cuptiProfilerHostEvaluateToGpuValues" },
	};

	return symbols_find(handle, table, ARRAY_SIZE(table));
}
