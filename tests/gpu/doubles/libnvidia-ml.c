/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML with two GPUs whose state the test sets; see nvml_double.h. SONAME
 * libnvidia-ml.so.1, layouts of the published interface (12.9), declared here once more
 * so that a mistake of nvml_abi.h isn't made twice.
 *
 * NVML_DOUBLE_OLD: as a driver before Hopper: no GPM, no events, no processes of version 3.
 * NVML_DOUBLE_BARE: a library that lacks what nothing works without.
 */
#include "nvml_double.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	TIMEOUT = 10,
	LOST = 15,
	VERSION_MISMATCH = 25,
};

typedef struct nvml_double_gpu *device_t;

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	int valueType;
	int nvmlReturn;
	union {
		double dVal;
		int siVal;
		unsigned int uiVal;
		unsigned long ulVal;
		unsigned long long ullVal;
		signed long long sllVal;
		unsigned short usVal;
	} value;
} field_t;

typedef struct {
	device_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} event_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
} process_t;

typedef struct {
	unsigned int metricId;
	int nvmlReturn;
	double value;
	struct {
		char *shortName, *longName, *unit;
	} metricInfo;
} gpm_metric_t;

typedef struct {
	unsigned int version, numMetrics;
	void *sample1, *sample2;
	gpm_metric_t metrics[477];
} gpm_metrics_t;

typedef struct {
	unsigned int version, isSupportedDevice;
} gpm_support_t;

struct gpm_sample {
	device_t device;
	int number;
};

EXPORT struct nvml_double *double_nvml(void);
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int status);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int length);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *cnt);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t *ret);
EXPORT int nvmlDeviceGetName(device_t device, char *name, unsigned int length);
EXPORT int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned int length);
EXPORT int nvmlDeviceGetFieldValues(device_t device, int cnt, field_t *values);
EXPORT int nvmlDeviceGetClockInfo(device_t device, int type, unsigned int *clock);
EXPORT int nvmlDeviceGetMaxClockInfo(device_t device, int type, unsigned int *clock);
EXPORT int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned int *temperature);
EXPORT int nvmlDeviceGetTotalEccErrors(device_t device, int type, int counter,
				       unsigned long long *cnt);
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(device_t device, unsigned int *generation);
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(device_t device, unsigned int *width);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned int *cnt,
						   process_t *infos);
EXPORT int nvmlEventSetCreate(void **set);
EXPORT int nvmlEventSetFree(void *set);
EXPORT int nvmlDeviceRegisterEvents(device_t device, unsigned long long types, void *set);
EXPORT int nvmlEventSetWait_v2(void *set, event_t *data, unsigned int timeout_ms);
EXPORT int nvmlGpmQueryDeviceSupport(device_t device, gpm_support_t *support);
EXPORT int nvmlGpmSampleAlloc(struct gpm_sample **sample);
EXPORT int nvmlGpmSampleFree(struct gpm_sample *sample);
EXPORT int nvmlGpmSampleGet(device_t device, struct gpm_sample *sample);
EXPORT int nvmlGpmMetricsGet(gpm_metrics_t *request);

static struct nvml_double nvml = {
	.gpu_cnt = NVML_DOUBLE_GPUS,
	.driver = "580.95.05",
	.gpm_version = 1,
	.gpus = { { .gpm = true }, { .gpm = true } },
};

static void set_field(struct nvml_double_gpu *gpu, int id, int type, uint64_t value)
{
	gpu->fields[id].status = SUCCESS;
	gpu->fields[id].type = type;
	gpu->fields[id].value = value;
}

/* H100s at work. */
__attribute__((constructor)) static void begin(void)
{
	const char *order = getenv("NVML_DOUBLE");

	if (order != NULL && strcmp(order, "fault") == 0)
		nvml.gpus[0].xids[nvml.gpus[0].xid_cnt++] = 79;
	for (int i = 0; i < NVML_DOUBLE_GPUS; i++) {
		struct nvml_double_gpu *gpu = &nvml.gpus[i];

		for (int id = 0; id < NVML_DOUBLE_FIELDS; id++)
			gpu->fields[id].status = NOT_SUPPORTED;
		set_field(gpu, 74, 3, 5000000000);
		set_field(gpu, 75, 3, 0);
		set_field(gpu, 83, 3, 123456);
		set_field(gpu, 90, 1, 26562);
		set_field(gpu, 91, 1, 18);
		set_field(gpu, 94, 1, 0);
		set_field(gpu, 138, 3, 1000);
		set_field(gpu, 139, 3, 1000);
		set_field(gpu, 186, 1, 650000);
		set_field(gpu, 197, 1, 100);
		set_field(gpu, 198, 1, 100);
		set_field(gpu, 269, 3, 7000000000);
		set_field(gpu, 270, 3, 0);
		gpu->sm_mhz = 1755;
		gpu->memory_mhz = 2619;
		gpu->celsius = 61;
		gpu->gpm_values[2] = 87.5;
		gpu->gpm_values[10] = 40;
		gpu->gpm_values[20] = 1024;
		gpu->gpm_values[61] = 2048;
	}
}

struct nvml_double *double_nvml(void)
{
	return &nvml;
}

static int status_of(device_t device)
{
	nvml.calls_when_lost += device->lost;
	return device->lost ? LOST : SUCCESS;
}

int nvmlInit_v2(void)
{
	const char *order = getenv("NVML_DOUBLE");

	if (order != NULL && strcmp(order, "crash") == 0)
		(void)raise(SIGSEGV);
	while (order != NULL && strcmp(order, "hang") == 0)
		(void)pause();
	if (order != NULL && strcmp(order, "refuse") == 0)
		return DRIVER_NOT_LOADED;
	nvml.inits += nvml.init_status == SUCCESS;
	return nvml.init_status;
}

int nvmlShutdown(void)
{
	nvml.shutdowns++;
	return SUCCESS;
}

const char *nvmlErrorString(int status)
{
	return status == DRIVER_NOT_LOADED  ? "Driver Not Loaded"
	       : status == VERSION_MISMATCH ? "Argument version mismatch"
	       : status == SUCCESS	    ? "Success"
					    : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	(void)snprintf(version, length, "%s", nvml.driver);
	return SUCCESS;
}

#ifndef NVML_DOUBLE_BARE
int nvmlDeviceGetCount_v2(unsigned int *cnt)
{
	*cnt = nvml.gpu_cnt;
	return nvml.count_status;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t *ret)
{
	if (index >= NVML_DOUBLE_GPUS)
		return INVALID_ARGUMENT;
	*ret = &nvml.gpus[index];
	return nvml.gpus[index].handle_status;
}

int nvmlDeviceGetName(device_t device, char *name, unsigned int length)
{
	(void)snprintf(name, length, "NVIDIA H100 80GB HBM3");
	return status_of(device);
}

/* That of libcuda_init.c, too. */
int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned int length)
{
	(void)snprintf(uuid, length, "GPU-0000000%d-0001-0203-0405-060708090a0b",
		       (int)(device - nvml.gpus));
	return status_of(device);
}

static void fill_value(field_t *value, uint64_t bits)
{
	switch (value->valueType) {
	case 0:
		value->value.dVal = (double)bits;
		break;
	case 1:
		value->value.ullVal = 0xdeadbeefdeadbeef; /* only the low half counts */
		value->value.uiVal = (unsigned int)bits;
		break;
	default:
		value->value.ullVal = bits;
	}
}

int nvmlDeviceGetFieldValues(device_t device, int cnt, field_t *values)
{
	if (nvml.fields_fail)
		return INVALID_ARGUMENT;
	for (int i = 0; i < cnt && !device->lost; i++) {
		unsigned int id = values[i].fieldId;

		values[i].nvmlReturn = NOT_SUPPORTED;
		if (id >= NVML_DOUBLE_FIELDS)
			continue;
		if ((id == 138 || id == 139) && values[i].scopeId != 0xffffffffu)
			continue; /* one link alone: not played */
		values[i].nvmlReturn = device->fields[id].status;
		values[i].valueType = device->fields[id].type;
		fill_value(&values[i], device->fields[id].value);
	}
	return status_of(device);
}

int nvmlDeviceGetClockInfo(device_t device, int type, unsigned int *clock)
{
	*clock = type == 1 ? device->sm_mhz : device->memory_mhz;
	return status_of(device);
}

int nvmlDeviceGetMaxClockInfo(device_t device, int type, unsigned int *clock)
{
	*clock = type == 1 ? 1980 : 2619;
	return status_of(device);
}

int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned int *temperature)
{
	*temperature = device->celsius;
	return sensor == 0 ? status_of(device) : INVALID_ARGUMENT;
}

int nvmlDeviceGetTotalEccErrors(device_t device, int type, int counter, unsigned long long *cnt)
{
	*cnt = device->ecc[type];
	return counter == 0 ? status_of(device) : INVALID_ARGUMENT;
}

int nvmlDeviceGetMaxPcieLinkGeneration(device_t device, unsigned int *generation)
{
	*generation = 5;
	return status_of(device);
}

int nvmlDeviceGetMaxPcieLinkWidth(device_t device, unsigned int *width)
{
	*width = 16;
	return status_of(device);
}

#ifndef NVML_DOUBLE_OLD
static void read_pids(device_t device, const char *path)
{
	FILE *file = fopen(path, "r");

	device->pid_cnt = 0;
	while (file != NULL && device->pid_cnt < sizeof(device->pids) / sizeof(device->pids[0]) &&
	       fscanf(file, "%u", &device->pids[device->pid_cnt]) == 1)
		device->pid_cnt++;
	if (file != NULL)
		(void)fclose(file);
}

int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned int *cnt, process_t *infos)
{
	unsigned int room = *cnt;

	if (getenv("NVML_DOUBLE_PIDS") != NULL && device == &nvml.gpus[0])
		read_pids(device, getenv("NVML_DOUBLE_PIDS"));
	*cnt = device->pid_cnt;
	if (room < device->pid_cnt)
		return INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < device->pid_cnt; i++)
		infos[i] = (process_t){ .pid = device->pids[i] };
	return status_of(device);
}

int nvmlEventSetCreate(void **set)
{
	nvml.sets++;
	*set = &nvml;
	return SUCCESS;
}

int nvmlEventSetFree(void *set)
{
	nvml.sets -= set == &nvml;
	return SUCCESS;
}

int nvmlDeviceRegisterEvents(device_t device, unsigned long long types, void *set)
{
	return types == 8 && set == &nvml ? status_of(device) : INVALID_ARGUMENT;
}

int nvmlEventSetWait_v2(void *set, event_t *data, unsigned int timeout_ms)
{
	(void)set;
	(void)timeout_ms;
	for (int i = 0; i < NVML_DOUBLE_GPUS; i++) {
		struct nvml_double_gpu *gpu = &nvml.gpus[i];

		if (gpu->xid_cnt == 0)
			continue;
		*data = (event_t){ .device = gpu, .eventType = 8, .eventData = gpu->xids[0] };
		memmove(gpu->xids, gpu->xids + 1, --gpu->xid_cnt * sizeof(*gpu->xids));
		return SUCCESS;
	}
	return TIMEOUT;
}

/* --- GPM --- */

int nvmlGpmQueryDeviceSupport(device_t device, gpm_support_t *support)
{
	if (support->version != 1)
		return VERSION_MISMATCH;
	support->isSupportedDevice = device->gpm;
	return status_of(device);
}

int nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
	*sample = calloc(1, sizeof(**sample));
	nvml.samples += *sample != NULL;
	return *sample != NULL ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlGpmSampleFree(struct gpm_sample *sample)
{
	nvml.samples--;
	free(sample);
	return SUCCESS;
}

int nvmlGpmSampleGet(device_t device, struct gpm_sample *sample)
{
	static int number;

	sample->device = device;
	sample->number = ++number;
	return status_of(device);
}

int nvmlGpmMetricsGet(gpm_metrics_t *request)
{
	const struct gpm_sample *before = request->sample1, *after = request->sample2;

	if (request->version != nvml.gpm_version)
		return VERSION_MISMATCH;
	if (before == NULL || after == NULL || before->device != after->device ||
	    before->device == NULL || before->number >= after->number)
		return INVALID_ARGUMENT;
	for (unsigned int i = 0; i < request->numMetrics; i++) {
		unsigned int id = request->metrics[i].metricId;

		request->metrics[i].nvmlReturn =
			id < 64 ? after->device->gpm_status[id] : INVALID_ARGUMENT;
		request->metrics[i].value = id < 64 ? after->device->gpm_values[id] : 0;
	}
	if (nvml.gpm_clears_all)
		memset(&request->metrics[request->numMetrics], 0,
		       (477 - request->numMetrics) * sizeof(request->metrics[0]));
	return status_of(after->device);
}
#endif
