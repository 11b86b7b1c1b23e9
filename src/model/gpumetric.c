/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpumetric.h"

const char *gpu_metric_name(uint32_t metric)
{
	static const char *const names[] = {
#define X(id, text, unit, type, what) text,
		GPU_METRIC_LIST(X)
#undef X
	};

	return metric < ARRAY_SIZE(names) ? names[metric] : "unknown";
}

const char *gpu_metric_unit(uint32_t metric)
{
	static const char *const units[] = {
#define X(id, text, unit, type, what) unit,
		GPU_METRIC_LIST(X)
#undef X
	};

	return metric < ARRAY_SIZE(units) ? units[metric] : "";
}

bool gpu_metric_is_counter(uint32_t metric)
{
	static const uint8_t types[] = {
#define X(id, text, unit, type, what) GPU_##type,
		GPU_METRIC_LIST(X)
#undef X
	};

	return metric < ARRAY_SIZE(types) && types[metric] == GPU_COUNTER;
}
