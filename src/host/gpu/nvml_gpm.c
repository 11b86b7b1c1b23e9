/* SPDX-License-Identifier: Apache-2.0 */
/* GPM, on Hopper and later: shares and rates between two looks at least 100 ms apart. */
#include "host/gpu/nvml_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

static const struct {
	enum gpu_metric metric;
	uint32_t id;
	double scale;
} gpm_metrics[] = {
	{ GPU_METRIC_ACTIVE, 1, 0.01 },		{ GPU_METRIC_CORES_ACTIVE, 2, 0.01 },
	{ GPU_METRIC_OCCUPANCY, 3, 0.01 },	{ GPU_METRIC_MATRIX_ACTIVE, 5, 0.01 },
	{ GPU_METRIC_MEMORY_ACTIVE, 10, 0.01 }, { GPU_METRIC_PCIE_TX_RATE, 20, MIB },
	{ GPU_METRIC_PCIE_RX_RATE, 21, MIB },	{ GPU_METRIC_LINK_RX_RATE, 60, MIB },
	{ GPU_METRIC_LINK_TX_RATE, 61, MIB },
};

static bool gpm_is_complete(const struct nvml *nvml)
{
	return nvml->gpm_supported != NULL && nvml->gpm_alloc != NULL && nvml->gpm_free != NULL &&
	       nvml->gpm_sample != NULL && nvml->gpm_metrics != NULL;
}

void nvml_open_gpm(struct nvml *nvml, struct device *device)
{
	struct nvml_gpm_support support = { .version = 1 };
	int status;

	if (!gpm_is_complete(nvml)) {
		(void)snprintf(device->public.why, GPUHW_WHY, "this driver has no GPM");
		return;
	}
	status = nvml->gpm_supported(device->handle, &support);
	if (status != NVML_OK || support.supported == 0) {
		if (status == NVML_OK)
			(void)snprintf(device->public.why, GPUHW_WHY, "this GPU has no GPM");
		else if (nvml_device_status(device, status) != -ENODEV)
			nvml_say_status(nvml, "GPM", status, device->public.why);
		return;
	}
	if (nvml->gpm_alloc(&device->gpm[0]) != NVML_OK ||
	    nvml->gpm_alloc(&device->gpm[1]) != NVML_OK)
		(void)snprintf(device->public.why, GPUHW_WHY, "GPM: no memory for samples");
	else
		device->gpm_works = true;
}

static void give_up_gpm(struct nvml *nvml, struct device *device, int status)
{
	device->gpm_works = false;
	if (nvml_device_status(device, status) != -ENODEV)
		nvml_say_status(nvml, "GPM", status, device->public.why);
}

static int take_gpm(struct nvml *nvml, struct device *device, struct gpuhw_values *ret)
{
	struct nvml_gpm_metrics *request = nvml->request;
	int status;

	memset(request, 0, sizeof(*request));
	request->version = NVML_GPM_VERSION;
	request->cnt = ARRAY_SIZE(gpm_metrics);
	request->before = device->gpm[device->gpm_turn ^ 1];
	request->after = device->gpm[device->gpm_turn];
	for (size_t i = 0; i < ARRAY_SIZE(gpm_metrics); i++)
		request->metrics[i].id = gpm_metrics[i].id;
	status = nvml->gpm_metrics(request);
	if (status != NVML_OK) {
		give_up_gpm(nvml, device, status);
		return device->public.lost ? -ENODEV : -ENOTSUP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(gpm_metrics); i++) {
		const struct nvml_gpm_metric *metric = &request->metrics[i];

		if (metric->status == NVML_OK && metric->value >= 0)
			gpuhw_set(ret, gpm_metrics[i].metric, metric->value * gpm_metrics[i].scale);
	}
	return 0;
}

int nvml_fast(void *state, size_t idx, struct gpuhw_values *ret)
{
	struct nvml *nvml = state;
	struct device *device = &nvml->devices[idx];
	struct gpuhw_values values = { 0 };
	int status, error = 0;

	if (device->public.lost)
		return -ENODEV;
	if (!device->gpm_works)
		return -ENOTSUP;
	status = nvml->gpm_sample(device->handle, device->gpm[device->gpm_turn]);
	if (status != NVML_OK) {
		give_up_gpm(nvml, device, status);
		return device->public.lost ? -ENODEV : -ENOTSUP;
	}
	if (device->gpm_begun)
		error = take_gpm(nvml, device, &values);
	device->gpm_begun = true;
	device->gpm_turn ^= 1;
	if (error == 0)
		*ret = values;
	return error;
}

void nvml_close_gpm(struct nvml *nvml, struct device *device)
{
	for (int turn = 0; turn < 2; turn++) {
		if (device->gpm[turn] != NULL)
			(void)nvml->gpm_free(device->gpm[turn]);
	}
}
