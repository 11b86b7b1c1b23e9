/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/gpucounters.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct gpucounters_ops *const gpucounters_all[] = { &gpucounters_pmsampling, NULL };
const struct gpupause_tool *const gpucounters_tools[] = { &gpucounters_dcgm, NULL };

/* What mu and sigma are made of (format/sidecar/sidecar_apply.c). */
#define FINE_METRICS                                                          \
	(1ULL << GPU_METRIC_CORES_ACTIVE | 1ULL << GPU_METRIC_MEMORY_ACTIVE | \
	 1ULL << GPU_METRIC_LINK_TX_RATE | 1ULL << GPU_METRIC_PCIE_TX_RATE |  \
	 1ULL << GPU_METRIC_PCIE_RX_RATE | 1ULL << GPU_METRIC_PCIE_ACTIVE)

/* Of the other metrics, since the last means. */
struct means {
	int64_t idx, end_ns;
	double sums[GPU_METRIC_CNT];
	uint32_t cnts[GPU_METRIC_CNT]; /* of sums */
};

struct device {
	struct gpucounters *counters;
	struct gpucounters_device id;
	char why[GPUHW_WHY];
	bool sampled;
	struct means means;
};

struct gpucounters {
	struct gpucounters_host host;
	const struct gpucounters_ops *ops; /* NULL: none has devices */
	void *state;
	char why[GPUHW_WHY]; /* of all devices */
	struct device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
	VEC(struct sidecar_gpu_sample) samples;
	bool lost; /* samples, for lack of memory */
};

static void push_sample(struct device *device, int64_t time_ns, uint32_t metric, double value)
{
	struct gpucounters *counters = device->counters;
	struct sidecar_gpu_sample sample = { .time_ns = time_ns,
					     .value = value,
					     .gpu = (uint32_t)(device - counters->devices),
					     .metric = metric };

	if (vec_push(&counters->samples, sample) < 0)
		counters->lost = true;
}

static void push_means(struct device *device)
{
	struct means *means = &device->means;

	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if (means->cnts[metric] > 0)
			push_sample(device, means->end_ns, metric,
				    means->sums[metric] / means->cnts[metric]);
	}
	*means = (struct means){ .idx = means->idx };
}

static void take(void *arg, int64_t time_ns, const struct gpuhw_values *values)
{
	struct device *device = arg;
	struct means *means = &device->means;
	int64_t idx = time_ns / (GPUCOUNTERS_MEAN_MS * NSEC_PER_MSEC);

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

static bool let_go(void *arg, const struct gpupause_tool *tool)
{
	const struct gpucounters_host *host = &((struct device *)arg)->counters->host;

	return host->let_go != NULL && host->let_go(host->arg, tool);
}

/* Returns how many devices are sampled. */
static int start_devices(struct gpucounters *counters)
{
	int64_t share_ns =
		(int64_t)counters->device_cnt * GPUCOUNTERS_FINE_NS / GPUCOUNTERS_FINE_DEVICES;
	int cnt = 0;

	for (size_t i = 0; i < counters->device_cnt; i++) {
		struct device *device = &counters->devices[i];
		const struct gpucounters_setup setup = { .bucket_ns =
								 MAX(GPUCOUNTERS_FINE_NS, share_ns),
							 .now_ns = clock_mono_ns,
							 .take = take,
							 .let_go = let_go,
							 .arg = device };

		*device = (struct device){ .counters = counters };
		counters->ops->device(counters->state, i, &device->id);
		device->sampled =
			counters->ops->start(counters->state, i, &setup, device->why) == 0;
		cnt += device->sampled;
	}
	return cnt;
}

/* Opens the first back end that has devices; on failure why has the reasons of all. */
static int open_backend(struct gpucounters *counters)
{
	size_t len = 0;

	for (size_t i = 0; counters->host.backends[i] != NULL; i++) {
		const struct gpucounters_ops *ops = counters->host.backends[i];
		char reason[GPUHW_WHY] = "";

		if (ops->open(&counters->state, reason) == 0) {
			counters->ops = ops;
			counters->device_cnt =
				MIN(ops->count(counters->state), (size_t)GPUHW_DEVICES_MAX);
			return 0;
		}
		if (len < GPUHW_WHY)
			len += (size_t)snprintf(counters->why + len, GPUHW_WHY - len, "%s%s",
						len > 0 ? "; " : "", reason);
	}
	return -ENODEV;
}

int gpucounters_start(const struct gpucounters_host *host, struct gpucounters **ret)
{
	struct gpucounters *counters = calloc(1, sizeof(*counters));
	int error;

	*ret = counters;
	if (counters == NULL)
		return -ENOMEM;
	counters->host = *host;
	error = open_backend(counters);
	if (error < 0)
		return error;
	return start_devices(counters) > 0 ? 0 : -ENODEV;
}

int gpucounters_drain(struct gpucounters *counters)
{
	int cnt = 0;

	for (size_t i = 0; i < counters->device_cnt; i++) {
		struct device *device = &counters->devices[i];

		if (!device->sampled)
			continue;
		if (counters->ops->drain(counters->state, i, device->why) < 0) {
			counters->ops->stop(counters->state, i);
			device->sampled = false;
		}
		cnt += device->sampled;
	}
	return cnt;
}

/* --- handing on --- */

static int push_devices(const struct gpucounters *counters, struct sidecar *side)
{
	int error = 0;

	for (size_t i = 0; i < counters->device_cnt && error == 0; i++) {
		const struct device *device = &counters->devices[i];
		struct sidecar_gpu gpu = { .index = device->id.index };
		struct sidecar_gpu_id id = { .gpu = (uint32_t)i };

		(void)snprintf(gpu.why, sizeof(gpu.why), "%s", device->why);
		memcpy(id.uuid, device->id.uuid, sizeof(device->id.uuid));
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

int gpucounters_take(struct gpucounters *counters, struct sidecar *side)
{
	int error = counters->device_cnt > 0 ? push_devices(counters, side)
					     : push_none(counters->why, side);

	vec_foreach(sample, &counters->samples) {
		if (error == 0)
			error = vec_push(&side->gpu_samples, *sample);
	}
	counters->samples.cnt = 0;
	if (counters->lost)
		error = -ENOMEM;
	counters->lost = false;
	return error;
}

struct gpucounters *gpucounters_stop(struct gpucounters *counters, struct sidecar *side)
{
	if (counters == NULL)
		return NULL;
	for (size_t i = 0; i < counters->device_cnt; i++) {
		if (counters->devices[i].sampled)
			counters->ops->stop(counters->state, i);
		push_means(&counters->devices[i]);
	}
	(void)!gpucounters_take(counters, side);
	vec_done(&counters->samples);
	if (counters->ops != NULL)
		counters->ops->close(counters->state);
	free(counters);
	return NULL;
}
