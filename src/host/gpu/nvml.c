/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gpu/nvml.h"

#include "host/gpu/nvml_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NVML_SONAME "libnvidia-ml.so.1"
#define FIELD_LINK_SPEED 90 /* MB a second of one NVLink */
#define FIELD_LINK_COUNT 91
#define PROCESSES_MAX 64

/* Bytes a second of one lane, by generation; coding is taken off. */
static const double pcie_lane[] = { 0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9 };

/* Fills the table. Returns the first symbol that nothing works without, NULL when all are there. */
static const char *resolve(struct nvml *nvml)
{
	const struct {
		void *function;
		const char *symbol;
		bool needed;
	} table[] = {
		{ &nvml->init, "nvmlInit_v2", true },
		{ &nvml->shutdown, "nvmlShutdown", true },
		{ &nvml->count, "nvmlDeviceGetCount_v2", true },
		{ &nvml->handle, "nvmlDeviceGetHandleByIndex_v2", true },
		{ &nvml->error_text, "nvmlErrorString", false },
		{ &nvml->driver_version, "nvmlSystemGetDriverVersion", false },
		{ &nvml->name, "nvmlDeviceGetName", false },
		{ &nvml->uuid, "nvmlDeviceGetUUID", false },
		{ &nvml->fields, "nvmlDeviceGetFieldValues", false },
		{ &nvml->clock, "nvmlDeviceGetClockInfo", false },
		{ &nvml->max_clock, "nvmlDeviceGetMaxClockInfo", false },
		{ &nvml->temperature, "nvmlDeviceGetTemperature", false },
		{ &nvml->ecc, "nvmlDeviceGetTotalEccErrors", false },
		{ &nvml->pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration", false },
		{ &nvml->pcie_width, "nvmlDeviceGetMaxPcieLinkWidth", false },
		{ &nvml->processes, "nvmlDeviceGetComputeRunningProcesses_v3", false },
		{ &nvml->events_new, "nvmlEventSetCreate", false },
		{ &nvml->events_free, "nvmlEventSetFree", false },
		{ &nvml->events_add, "nvmlDeviceRegisterEvents", false },
		{ &nvml->events_wait, "nvmlEventSetWait_v2", false },
		{ &nvml->gpm_supported, "nvmlGpmQueryDeviceSupport", false },
		{ &nvml->gpm_alloc, "nvmlGpmSampleAlloc", false },
		{ &nvml->gpm_free, "nvmlGpmSampleFree", false },
		{ &nvml->gpm_sample, "nvmlGpmSampleGet", false },
		{ &nvml->gpm_metrics, "nvmlGpmMetricsGet", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		void *symbol = dlsym(nvml->library, table[i].symbol);

		if (symbol == NULL && table[i].needed)
			return table[i].symbol;
		memcpy(table[i].function, &symbol, sizeof(symbol));
	}
	return NULL;
}

void nvml_say_status(const struct nvml *nvml, const char *what, int status,
		     char why[static GPUHW_WHY])
{
	const char *text = nvml->error_text != NULL ? nvml->error_text(status) : NULL;

	(void)snprintf(why, GPUHW_WHY, "%s: %.40s (%d)", what, text != NULL ? text : "error",
		       status);
}

/* A status of a call on a device, as an errno; notes a device that is gone. */
int nvml_device_status(struct device *device, int status)
{
	if (status == NVML_OK)
		return 0;
	if (status != NVML_GPU_LOST)
		return status == NVML_NO_PERMISSION ? -EPERM : -ENOTSUP;
	device->public.lost = true;
	(void)snprintf(device->public.why, sizeof(device->public.why), "the GPU is lost");
	return -ENODEV;
}

/* --- opening --- */

/* "GPU-" and the UUID that CUDA also returns. */
static void read_uuid(const struct nvml *nvml, struct device *device)
{
	char text[NVML_UUID_BYTES] = "";
	const char *digits;

	if (nvml->uuid == NULL || nvml->uuid(device->handle, text, sizeof(text)) != NVML_OK)
		return;
	text[sizeof(text) - 1] = '\0';
	digits = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text;
	(void)snprintf(device->public.uuid, sizeof(device->public.uuid), "%.39s", digits);
}

/* Of links: the common speed of one, in MB a second, and how many there are. */
static void describe(struct nvml *nvml, struct device *device)
{
	uint32_t mhz, generation, width;

	if (nvml->name == NULL ||
	    nvml->name(device->handle, device->public.name, sizeof(device->public.name)) != NVML_OK)
		(void)snprintf(device->public.name, sizeof(device->public.name), "NVIDIA GPU");
	device->public.name[sizeof(device->public.name) - 1] = '\0';
	read_uuid(nvml, device);
	if (nvml->max_clock != NULL &&
	    nvml->max_clock(device->handle, NVML_SM_CLOCK, &mhz) == NVML_OK)
		device->public.core_hz = mhz * NVML_MHZ;
	device->public.link_bytes_per_sec = nvml_field_once(nvml, device, FIELD_LINK_SPEED) * 1e6 *
					    nvml_field_once(nvml, device, FIELD_LINK_COUNT);
	if (nvml->pcie_generation != NULL && nvml->pcie_width != NULL &&
	    nvml->pcie_generation(device->handle, &generation) == NVML_OK &&
	    nvml->pcie_width(device->handle, &width) == NVML_OK &&
	    generation < ARRAY_SIZE(pcie_lane))
		device->public.pcie_bytes_per_sec = pcie_lane[generation] * width;
}

static void open_devices(struct nvml *nvml, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt && nvml->device_cnt < GPUHW_DEVICES_MAX; i++) {
		struct device *device = &nvml->devices[nvml->device_cnt];
		int status = nvml->handle(i, &device->handle);

		/* A device that is lost, or may not be opened, keeps its number. */
		nvml->device_cnt++;
		if (status != NVML_OK) {
			nvml_say_status(nvml, "not opened", status, device->public.why);
			device->public.lost = status == NVML_GPU_LOST;
			device->handle = NULL;
			continue;
		}
		describe(nvml, device);
		nvml_probe_fields(nvml, device);
		nvml_open_gpm(nvml, device);
		if (nvml->events != NULL)
			(void)nvml->events_add(device->handle, NVML_EVENT_XID, nvml->events);
	}
}

static void open_events(struct nvml *nvml)
{
	if (nvml->events_new == NULL || nvml->events_free == NULL || nvml->events_add == NULL ||
	    nvml->events_wait == NULL || nvml->events_new(&nvml->events) != NVML_OK)
		nvml->events = NULL;
}

static int open_driver(struct nvml *nvml, char why[static GPUHW_WHY])
{
	char version[96] = "";
	uint32_t cnt = 0;
	int status = nvml->init();

	if (status != NVML_OK) {
		nvml_say_status(nvml, "NVML", status, why);
		return -ENODEV;
	}
	if (nvml->driver_version != NULL)
		(void)nvml->driver_version(version, sizeof(version));
	nvml->driver_major = (uint32_t)strtoul(version, NULL, 10);
	status = nvml->count(&cnt);
	if (status != NVML_OK || cnt == 0) {
		if (status != NVML_OK)
			nvml_say_status(nvml, "NVML's devices", status, why);
		else
			(void)snprintf(why, GPUHW_WHY, "NVML has no device");
		(void)nvml->shutdown();
		return -ENODEV;
	}
	open_events(nvml);
	open_devices(nvml, cnt);
	return 0;
}

static int open_library(struct nvml *nvml, char why[static GPUHW_WHY])
{
	const char *missing;
	int error;

	nvml->library = dlopen(NVML_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (nvml->library == NULL) {
		(void)snprintf(why, GPUHW_WHY, "no " NVML_SONAME);
		return -ENODEV;
	}
	missing = resolve(nvml);
	if (missing != NULL) {
		(void)snprintf(why, GPUHW_WHY, NVML_SONAME " lacks %.30s", missing);
		error = -ENODEV;
	} else {
		error = open_driver(nvml, why);
	}
	if (error < 0)
		(void)dlclose(nvml->library);
	return error;
}

static int nvml_open(void **ret_state, char why[static GPUHW_WHY])
{
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	int error = -ENOMEM;

	(void)snprintf(why, GPUHW_WHY, "out of memory");
	if (nvml != NULL)
		nvml->request = calloc(1, sizeof(*nvml->request));
	if (nvml != NULL && nvml->request != NULL)
		error = open_library(nvml, why);
	if (error < 0) {
		if (nvml != NULL)
			free(nvml->request);
		free(nvml);
		return error;
	}
	why[0] = '\0';
	*ret_state = nvml;
	return 0;
}

static void nvml_close(void *state)
{
	struct nvml *nvml = state;

	for (size_t i = 0; i < nvml->device_cnt; i++)
		nvml_close_gpm(nvml, &nvml->devices[i]);
	if (nvml->events != NULL)
		(void)nvml->events_free(nvml->events);
	(void)nvml->shutdown();
	(void)dlclose(nvml->library);
	free(nvml->request);
	free(nvml);
}

/* --- the rest of the table --- */

static size_t nvml_count(const void *state)
{
	return ((const struct nvml *)state)->device_cnt;
}

static const struct gpuhw_device *nvml_device(const void *state, size_t idx)
{
	return &((const struct nvml *)state)->devices[idx].public;
}

static size_t nvml_users(void *state, size_t idx, uint32_t *ret_pids, size_t cap)
{
	struct nvml *nvml = state;
	struct device *device = &nvml->devices[idx];
	struct nvml_process processes[PROCESSES_MAX];
	uint32_t cnt = PROCESSES_MAX;
	size_t used;

	if (nvml->processes == NULL || device->public.lost || device->handle == NULL ||
	    nvml_device_status(device, nvml->processes(device->handle, &cnt, processes)) < 0)
		return 0;
	/* A library may return a count beyond the room that it got. */
	cnt = MIN(cnt, (uint32_t)PROCESSES_MAX);
	used = MIN((size_t)cnt, cap);
	for (size_t i = 0; i < used; i++)
		ret_pids[i] = processes[i].pid;
	return used;
}

const struct gpuhw_ops nvml_ops = {
	.name = "NVML",
	.open = nvml_open,
	.close = nvml_close,
	.count = nvml_count,
	.device = nvml_device,
	.slow = nvml_slow,
	.fast = nvml_fast,
	.users = nvml_users,
};
