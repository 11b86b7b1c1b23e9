/* SPDX-License-Identifier: Apache-2.0 */
/* Series of /metrics for the host's GPUs. */
#include "base/clock.h"
#include "live/metrics/hostvalues.h"
#include "live/metrics/metrics_parts.h"

#include <inttypes.h>
#include <stdio.h>

/* label: value of the second label; NULL: the GPU is the only label. */
static const struct {
	enum gpu_metric from;
	enum metric to;
	const char *label;
} shown[] = {
	{ GPU_METRIC_CORE_CLOCK, METRIC_GPU_CORE_CLOCK, NULL },
	{ GPU_METRIC_MEMORY_CLOCK, METRIC_GPU_MEMORY_CLOCK, NULL },
	{ GPU_METRIC_POWER, METRIC_GPU_POWER, NULL },
	{ GPU_METRIC_ENERGY, METRIC_GPU_ENERGY, NULL },
	{ GPU_METRIC_TEMPERATURE, METRIC_GPU_TEMPERATURE, NULL },
	{ GPU_METRIC_THROTTLED_POWER, METRIC_GPU_THROTTLED, "power" },
	{ GPU_METRIC_THROTTLED_THERMAL, METRIC_GPU_THROTTLED, "heat" },
	{ GPU_METRIC_THROTTLED_BRAKE, METRIC_GPU_THROTTLED, "brake" },
	{ GPU_METRIC_ECC_CORRECTED, METRIC_GPU_MEMORY_ERRORS, "corrected" },
	{ GPU_METRIC_ECC_UNCORRECTED, METRIC_GPU_MEMORY_ERRORS, "uncorrected" },
	{ GPU_METRIC_REMAPPED_ROWS, METRIC_GPU_ROWS, NULL },
	{ GPU_METRIC_PCIE_REPLAYS, METRIC_GPU_PCIE_ERRORS, "replay" },
	{ GPU_METRIC_PCIE_ERRORS, METRIC_GPU_PCIE_ERRORS, "error" },
	{ GPU_METRIC_PCIE_TX, METRIC_GPU_PCIE_BYTES, "tx" },
	{ GPU_METRIC_PCIE_RX, METRIC_GPU_PCIE_BYTES, "rx" },
	{ GPU_METRIC_LINK_TX, METRIC_GPU_LINK_BYTES, "tx" },
	{ GPU_METRIC_LINK_RX, METRIC_GPU_LINK_BYTES, "rx" },
	{ GPU_METRIC_LINK_REPLAYS, METRIC_GPU_LINK_ERRORS, "replay" },
	{ GPU_METRIC_LINK_RECOVERIES, METRIC_GPU_LINK_ERRORS, "recovery" },
	{ GPU_METRIC_LINK_CRC_ERRORS, METRIC_GPU_LINK_ERRORS, "crc" },
	{ GPU_METRIC_LINK_RX_ERRORS, METRIC_GPU_LINK_ERRORS, "receive" },
	{ GPU_METRIC_C2C_ERRORS, METRIC_GPU_C2C_ERRORS, NULL },
	{ GPU_METRIC_ACTIVE, METRIC_GPU_ACTIVE, "any" },
	{ GPU_METRIC_CORES_ACTIVE, METRIC_GPU_ACTIVE, "cores" },
	{ GPU_METRIC_OCCUPANCY, METRIC_GPU_ACTIVE, "threads" },
	{ GPU_METRIC_MATRIX_ACTIVE, METRIC_GPU_ACTIVE, "matrix" },
	{ GPU_METRIC_MEMORY_ACTIVE, METRIC_GPU_ACTIVE, "memory" },
};

static uint32_t series(struct metrics_host *host, enum metric metric, uint32_t gpu,
		       const char *label)
{
	char number[12];

	(void)snprintf(number, sizeof(number), "%" PRIu32, gpu);
	return metrics_series(host->metrics, metric, METRIC_VALUES(number, label));
}

static void show_value(struct metrics_host *host, uint32_t gpu, size_t which, double value)
{
	enum metric metric = shown[which].to;
	uint32_t at = series(host, metric, gpu, shown[which].label);

	if (metrics_desc(metric)->type == METRIC_GAUGE)
		metrics_set(host->metrics, at, value);
	else if (value >= 0 && value * (double)metrics_desc(metric)->scale < 0x1p63)
		metrics_raise(host->metrics, at,
			      (uint64_t)(value * (double)metrics_desc(metric)->scale));
}

/* Hides a gauge that is no longer measured; counters stay. */
static void hide_value(struct metrics_host *host, uint32_t gpu, size_t which)
{
	if (metrics_desc(shown[which].to)->type == METRIC_GAUGE)
		metrics_drop(host->metrics, series(host, shown[which].to, gpu, shown[which].label));
}

static void show_values(struct metrics_host *host, uint32_t gpu, const struct gpuhw_values *values)
{
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		uint64_t bit = 1ULL << shown[i].from;

		if ((values->set & bit) != 0)
			show_value(host, gpu, i, values->values[shown[i].from]);
		else if ((host->gpu_shown[gpu] & bit) != 0)
			hide_value(host, gpu, i);
	}
	host->gpu_shown[gpu] = values->set;
}

static void show_device(struct metrics_host *host, uint32_t gpu, const struct gpuhw_device *device)
{
	char number[12];

	(void)snprintf(number, sizeof(number), "%" PRIu32, gpu);
	metrics_set(host->metrics,
		    metrics_series(host->metrics, METRIC_GPU_DEVICE,
				   METRIC_VALUES(number, device->name, device->uuid)),
		    1);
	metrics_set(host->metrics, series(host, METRIC_GPU_LOST, gpu, NULL), device->lost);
}

static void count_samplers(struct metrics_host *host, const char *how, uint32_t cnt)
{
	metrics_raise(host->metrics,
		      metrics_series(host->metrics, METRIC_GPU_SAMPLERS, METRIC_VALUES(how)), cnt);
}

void metrics_host_gpus(struct metrics_host *host, const struct gpuwatch_state *state)
{
	static const struct gpuhw_values nothing = { 0 };

	for (uint32_t i = 0; i < MIN(state->device_cnt, (size_t)GPUHW_DEVICES_MAX); i++) {
		const struct gpuhw_device *device = &state->devices[i];

		show_device(host, i, device);
		show_values(host, i, device->lost ? &nothing : &state->values[i]);
		metrics_set(host->metrics, series(host, METRIC_GPU_SAMPLED, i, NULL),
			    state->fed[i] != 0);
	}
	if (state->device_cnt == 0)
		return;
	count_samplers(host, "started", state->samplers);
	count_samplers(host, "crashed", state->crashed);
	count_samplers(host, "hung", state->hung);
}

void metrics_host_gpu_fault(struct metrics_host *host, uint32_t device, uint32_t number)
{
	char text[12];

	(void)snprintf(text, sizeof(text), "%" PRIu32, number);
	metrics_add(host->metrics, series(host, METRIC_GPU_FAULTS, device, text), 1);
}
