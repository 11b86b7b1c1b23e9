/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/host/pmsampler.h"

#include "base/clock.h"
#include "base/symbols.h"
#include "collect/host/cuptipath.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CUDA_SONAME "libcuda.so.1"
#define UUID_BYTES 16

/* What mu and sigma are made of (format/sidecar_apply.c). */
#define FINE_METRICS                                                          \
	(1ULL << GPU_METRIC_CORES_ACTIVE | 1ULL << GPU_METRIC_MEMORY_ACTIVE | \
	 1ULL << GPU_METRIC_LINK_TX_RATE | 1ULL << GPU_METRIC_PCIE_TX_RATE |  \
	 1ULL << GPU_METRIC_PCIE_ACTIVE)

/* Of the other metrics, since the last means. */
struct pm_means {
	int64_t idx, end_ns;
	double sums[GPU_METRIC_CNT];
	uint32_t cnts[GPU_METRIC_CNT]; /* of sums */
};

struct pm_device {
	struct pmsampler *sampler;
	uint32_t index;
	char uuid[GPUHW_UUID], why[GPUHW_WHY];
	struct pm_session *session; /* NULL: not sampled, or no more */
	struct pm_means means;
};

struct pmsampler {
	struct pmsampler_setup setup;
	struct pm_library library;
	void *cuda;
	int driver;	     /* its version of CUDA: 12040 is 12.4 */
	char why[GPUHW_WHY]; /* of all devices */
	struct pm_device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
	VEC(struct sidecar_gpu_sample) samples;
	bool lost; /* samples, for lack of memory */
};

/* --- devices --- */

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
		struct pm_device *device = &sampler->devices[sampler->device_cnt++];
		unsigned char uuid[UUID_BYTES] = { 0 };
		int handle;

		*device = (struct pm_device){ .sampler = sampler, .index = (uint32_t)i };
		if (cuda->device(&handle, i) == 0 && cuda->uuid(uuid, handle) == 0)
			uuid_text(uuid, device->uuid);
	}
}

static int open_cuda(struct pmsampler *sampler)
{
	struct cuda cuda;
	int cnt = 0, status;

	sampler->cuda = dlopen(CUDA_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (sampler->cuda == NULL || !resolve(sampler->cuda, &cuda)) {
		(void)snprintf(sampler->why, sizeof(sampler->why), "no " CUDA_SONAME);
		return -ENODEV;
	}
	status = cuda.init(0);
	if (status == 0)
		status = cuda.count(&cnt);
	if (status != 0 || cnt <= 0) {
		(void)snprintf(sampler->why, sizeof(sampler->why), "CUDA has no device (error %d)",
			       status);
		return -ENODEV;
	}
	(void)cuda.version(&sampler->driver);
	find_devices(sampler, &cuda, cnt);
	return 0;
}

static int open_library(struct pmsampler *sampler)
{
	const char *named = sampler->setup.library;
	int error =
		pm_library_find(&sampler->library, named != NULL ? named : getenv(CUPTIPATH_ENV),
				getenv("PATH"), sampler->driver, sampler->why);

	if (error == 0)
		sampler->why[0] = '\0';
	return error;
}

/* --- sampling --- */

static void push_sample(struct pm_device *device, int64_t time_ns, uint32_t metric, double value)
{
	struct pmsampler *sampler = device->sampler;
	struct sidecar_gpu_sample sample = { .time_ns = time_ns,
					     .value = value,
					     .gpu = (uint32_t)(device - sampler->devices),
					     .metric = metric };

	if (vec_push(&sampler->samples, sample) < 0)
		sampler->lost = true;
}

static void push_means(struct pm_device *device)
{
	struct pm_means *means = &device->means;

	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if (means->cnts[metric] > 0)
			push_sample(device, means->end_ns, metric,
				    means->sums[metric] / means->cnts[metric]);
	}
	*means = (struct pm_means){ .idx = means->idx };
}

static void take(void *arg, int64_t time_ns, const struct gpuhw_values *values)
{
	struct pm_device *device = arg;
	struct pm_means *means = &device->means;
	int64_t idx = time_ns / (PM_MEAN_MS * NSEC_PER_MSEC);

	if (idx != means->idx)
		push_means(device);
	means->idx = idx;
	means->end_ns = time_ns;
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if ((values->set >> metric & 1) == 0)
			continue;
		if ((FINE_METRICS >> metric & 1) != 0) {
			push_sample(device, time_ns, metric, values->values[metric]);
			continue;
		}
		means->sums[metric] += values->values[metric];
		means->cnts[metric]++;
	}
}

static bool free_counters(void *arg, const char *chip)
{
	const struct pmsampler_setup *setup = &((struct pm_device *)arg)->sampler->setup;

	return setup->free_counters != NULL && setup->free_counters(setup->arg, chip);
}

/* Returns how many devices are sampled. */
static int start_devices(struct pmsampler *sampler)
{
	int64_t share_ns = (int64_t)sampler->device_cnt * PM_FINE_NS / PM_FINE_DEVICES;
	int cnt = 0;

	for (size_t i = 0; i < sampler->device_cnt; i++) {
		struct pm_device *device = &sampler->devices[i];
		const struct pm_setup setup = { .device = device->index,
						.bucket_ns = MAX(PM_FINE_NS, share_ns),
						.now_ns = clock_mono_ns,
						.take = take,
						.free_counters = free_counters,
						.arg = device };

		cnt += pm_session_start(&sampler->library, &setup, &device->session, device->why) ==
		       0;
	}
	return cnt;
}

int pmsampler_start(const struct pmsampler_setup *setup, struct pmsampler **ret)
{
	struct pmsampler *sampler = calloc(1, sizeof(*sampler));
	int error;

	*ret = sampler;
	if (sampler == NULL)
		return -ENOMEM;
	sampler->setup = *setup;
	error = open_cuda(sampler);
	if (error == 0)
		error = open_library(sampler);
	if (error < 0)
		return error;
	return start_devices(sampler) > 0 ? 0 : -ENODEV;
}

static void drain(struct pm_device *device)
{
	uint32_t hz = pm_session_hz(device->session);

	if (pm_session_drain(device->session, device->why) < 0)
		device->session = pm_session_stop(device->session, NULL);
	else if (pm_session_hz(device->session) < hz)
		(void)snprintf(device->why, sizeof(device->why), "%u Hz: %u were too many",
			       pm_session_hz(device->session), hz);
}

int pmsampler_drain(struct pmsampler *sampler)
{
	int cnt = 0;

	for (size_t i = 0; i < sampler->device_cnt; i++) {
		if (sampler->devices[i].session == NULL)
			continue;
		drain(&sampler->devices[i]);
		cnt += sampler->devices[i].session != NULL;
	}
	return cnt;
}

/* --- handing on --- */

static int push_devices(const struct pmsampler *sampler, struct sidecar *side)
{
	int error = 0;

	for (size_t i = 0; i < sampler->device_cnt && error == 0; i++) {
		const struct pm_device *device = &sampler->devices[i];
		struct sidecar_gpu gpu = { .index = device->index };
		struct sidecar_gpu_id id = { .gpu = (uint32_t)i };

		(void)snprintf(gpu.why, sizeof(gpu.why), "%s",
			       sampler->why[0] != '\0' ? sampler->why : device->why);
		memcpy(id.uuid, device->uuid, sizeof(device->uuid));
		error = vec_push(&side->gpus, gpu);
		if (error == 0)
			error = vec_push(&side->gpu_ids, id);
	}
	return error;
}

static int push_none(const char *why, struct sidecar *side)
{
	struct sidecar_gpu none = { .index = SIDECAR_GPU_NONE };

	(void)snprintf(none.why, sizeof(none.why), "%s", why);
	return vec_push(&side->gpus, none);
}

int pmsampler_take(struct pmsampler *sampler, struct sidecar *side)
{
	int error = sampler->device_cnt > 0 ? push_devices(sampler, side)
					    : push_none(sampler->why, side);

	vec_foreach(sample, &sampler->samples) {
		if (error == 0)
			error = vec_push(&side->gpu_samples, *sample);
	}
	sampler->samples.cnt = 0;
	if (sampler->lost)
		error = -ENOMEM;
	sampler->lost = false;
	return error;
}

struct pmsampler *pmsampler_stop(struct pmsampler *sampler, struct sidecar *side)
{
	if (sampler == NULL)
		return NULL;
	for (size_t i = 0; i < sampler->device_cnt; i++) {
		sampler->devices[i].session = pm_session_stop(sampler->devices[i].session, NULL);
		push_means(&sampler->devices[i]);
	}
	(void)!pmsampler_take(sampler, side);
	vec_done(&sampler->samples);
	if (sampler->library.functions != NULL)
		pm_library_close(&sampler->library);
	if (sampler->cuda != NULL)
		(void)dlclose(sampler->cuda);
	free(sampler);
	return NULL;
}
