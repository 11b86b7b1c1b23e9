/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's back end of gpucounters.h: the devices, as CUDA counts them, and a session of PM sampling
 * for each (pmsampling_session.h).
 */
#include "base/symbols.h"
#include "host/counters/cuptipath.h"
#include "host/counters/gpucounters.h"
#include "host/counters/pmsampling_session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CUDA_SONAME "libcuda.so.1"
#define UUID_BYTES 16

struct pmsampler {
	struct pm_library library; /* zeroed until a device is started */
	void *cuda;
	int driver; /* its version of CUDA: 12040 is 12.4 */
	struct gpucounters_device devices[GPUHW_DEVICES_MAX];
	struct pm_session *sessions[GPUHW_DEVICES_MAX]; /* NULL: not sampled, or ended */
	size_t device_cnt;
};

struct cuda {
	int (*init)(unsigned);
	int (*version)(int *);
	int (*count)(int *);
	int (*device)(int *, int);
	int (*uuid)(unsigned char *, int);
};

static bool resolve(void *handle, struct cuda *cuda)
{
	const struct symbol table[] = {
		{ &cuda->init, "cuInit" },
		{ &cuda->version, "cuDriverGetVersion" },
		{ &cuda->count, "cuDeviceGetCount" },
		{ &cuda->device, "cuDeviceGet" },
		{ &cuda->uuid, "cuDeviceGetUuid_v2" },
	};

	return symbols_find(handle, table, ARRAY_SIZE(table)) == NULL;
}

/* As NVML writes it: groups of 8, 4, 4, 4 and 12 digits. */
static void uuid_text(const unsigned char *bytes, char ret[static GPUHW_UUID])
{
	size_t len = 0;

	for (size_t i = 0; i < UUID_BYTES; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		len += (size_t)snprintf(ret + len, GPUHW_UUID - len, "%s%02x", dash, bytes[i]);
	}
}

static void find_devices(struct pmsampler *sampler, const struct cuda *cuda, int cnt)
{
	for (int i = 0; i < cnt && sampler->device_cnt < GPUHW_DEVICES_MAX; i++) {
		struct gpucounters_device *device = &sampler->devices[sampler->device_cnt++];
		unsigned char uuid[UUID_BYTES] = { 0 };
		int handle;

		device->index = (uint32_t)i;
		if (cuda->device(&handle, i) == 0 && cuda->uuid(uuid, handle) == 0)
			uuid_text(uuid, device->uuid);
	}
}

static int open_cuda(struct pmsampler *sampler, char why[static GPUHW_WHY])
{
	struct cuda cuda;
	int cnt = 0, status;

	sampler->cuda = dlopen(CUDA_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (sampler->cuda == NULL || !resolve(sampler->cuda, &cuda)) {
		(void)snprintf(why, GPUHW_WHY, "no " CUDA_SONAME);
		return -ENODEV;
	}
	status = cuda.init(0);
	if (status == 0)
		status = cuda.count(&cnt);
	if (status != 0 || cnt <= 0) {
		(void)snprintf(why, GPUHW_WHY, "CUDA has no device (error %d)", status);
		return -ENODEV;
	}
	(void)cuda.version(&sampler->driver);
	find_devices(sampler, &cuda, cnt);
	return 0;
}

/* Device numbers as NVML's, and no injected libraries in this process. */
static void clean_environment(void)
{
	(void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
	(void)unsetenv("CUDA_INJECTION64_PATH");
	(void)unsetenv("NVTX_INJECTION64_PATH");
}

static void pmsampler_close(void *state)
{
	struct pmsampler *sampler = state;

	for (size_t i = 0; i < sampler->device_cnt; i++)
		(void)pm_session_stop(sampler->sessions[i], NULL);
	if (sampler->library.functions != NULL)
		pm_library_close(&sampler->library);
	if (sampler->cuda != NULL)
		(void)dlclose(sampler->cuda);
	free(sampler);
}

static int pmsampler_open(void **ret_state, char why[static GPUHW_WHY])
{
	struct pmsampler *sampler = calloc(1, sizeof(*sampler));
	int error;

	if (sampler == NULL)
		return -ENOMEM;
	clean_environment();
	error = open_cuda(sampler, why);
	if (error < 0)
		pmsampler_close(sampler);
	else
		*ret_state = sampler;
	return error;
}

static size_t pmsampler_count(const void *state)
{
	return ((const struct pmsampler *)state)->device_cnt;
}

static void pmsampler_device(const void *state, size_t idx, struct gpucounters_device *ret)
{
	*ret = ((const struct pmsampler *)state)->devices[idx];
}

static int pmsampler_start(void *state, size_t idx, const struct gpucounters_setup *setup,
			   char why[static GPUHW_WHY])
{
	struct pmsampler *sampler = state;
	int error = 0;

	if (sampler->library.functions == NULL)
		error = pm_library_find(&sampler->library, getenv(CUPTIPATH_ENV), getenv("PATH"),
					sampler->driver, why);
	if (error < 0)
		return error;
	return pm_session_start(&sampler->library, sampler->devices[idx].index, setup,
				&sampler->sessions[idx], why);
}

static int pmsampler_drain(void *state, size_t idx, char why[static GPUHW_WHY])
{
	struct pm_session *session = ((struct pmsampler *)state)->sessions[idx];
	uint32_t hz = pm_session_hz(session);
	int error = pm_session_drain(session, why);

	if (error == 0 && pm_session_hz(session) < hz)
		(void)snprintf(why, GPUHW_WHY, "%u Hz: %u were too many", pm_session_hz(session),
			       hz);
	return error;
}

static void pmsampler_stop(void *state, size_t idx)
{
	struct pm_session **session = &((struct pmsampler *)state)->sessions[idx];

	*session = pm_session_stop(*session, NULL);
}

const struct gpucounters_ops gpucounters_pmsampling = {
	.name = "PM sampling",
	.open = pmsampler_open,
	.close = pmsampler_close,
	.count = pmsampler_count,
	.device = pmsampler_device,
	.start = pmsampler_start,
	.drain = pmsampler_drain,
	.stop = pmsampler_stop,
};
