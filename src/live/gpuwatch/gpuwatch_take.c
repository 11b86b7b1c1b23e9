/* SPDX-License-Identifier: Apache-2.0 */
#include "live/gpuwatch/gpuwatch_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int push_none(struct sidecar *side, const char *why)
{
	struct sidecar_gpu none = { .index = SIDECAR_GPU_NONE };

	(void)snprintf(none.why, sizeof(none.why), "%s", why);
	return vec_push(&side->gpus, none);
}

/*
 * Records why samples are missing: of PM sampling always, if it was configured; of slower
 * samples only if no other source replaced them.
 */
static void fill_why(const struct gpuwatch *watch, uint32_t idx, char *ret, size_t size)
{
	const char *slower = watch->fed[idx] == 0 ? watch->devices[idx].why : "";
	const char *fed = gpuwatch_has_feed(watch) ? watch->feed_why[idx] : "";

	(void)snprintf(ret, size, "%s%s%s", fed, fed[0] != '\0' && slower[0] != '\0' ? "; " : "",
		       slower);
}

/* Appends the record of a device. Returns its index among the worker's devices, or -ENOMEM. */
static int push_device(const struct gpuwatch *watch, uint32_t idx, uint32_t flags,
		       struct sidecar *side)
{
	const struct gpuhw_device *device = &watch->devices[idx];
	struct sidecar_gpu gpu = { .index = idx,
				   .flags = flags | (device->lost ? SIDECAR_GPU_LOST : 0),
				   .core_hz = device->core_hz,
				   .pcie_bytes_per_sec = device->pcie_bytes_per_sec,
				   .link_bytes_per_sec = device->link_bytes_per_sec };

	memcpy(gpu.name, device->name, sizeof(gpu.name));
	fill_why(watch, idx, gpu.why, sizeof(gpu.why));
	if (vec_push(&side->gpus, gpu) < 0)
		return -ENOMEM;
	return (int)side->gpus.cnt - 1;
}

/* The first sample in the ring that may be of that time: pieces arrive a little late. */
static uint64_t first_since(const struct gpuwatch *watch, int64_t time_ns)
{
	uint64_t oldest = watch->pushed > watch->ring_cnt ? watch->pushed - watch->ring_cnt : 0;
	uint64_t first = watch->pushed;

	while (first > oldest &&
	       watch->ring[(first - 1) % watch->ring_cnt].time_ns >= time_ns - FEED_SILENT_NS)
		first--;
	return first;
}

/* Whether the ring has overwritten the first samples since then. */
static bool is_overwritten(const struct gpuwatch *watch, int64_t since_ns)
{
	return watch->pushed > watch->ring_cnt &&
	       watch->ring[watch->pushed % watch->ring_cnt].time_ns > since_ns;
}

static int push_samples(const struct gpuwatch *watch, uint32_t idx, uint32_t place,
			int64_t since_ns, struct sidecar *side)
{
	int64_t slack_ns = watch->setup.slow_ms * NSEC_PER_MSEC;
	int ret = 0;

	for (uint64_t i = first_since(watch, since_ns - slack_ns); i < watch->pushed && ret == 0;
	     i++) {
		struct sidecar_gpu_sample sample = watch->ring[i % watch->ring_cnt];

		/* Counters are read once a second: the last one before the window is their start. */
		if (sample.gpu != idx || sample.time_ns < since_ns - slack_ns)
			continue;
		sample.gpu = place;
		ret = vec_push(&side->gpu_samples, sample);
	}
	return ret;
}

static int take_device(const struct gpuwatch *watch, uint32_t idx, uint32_t flags, int64_t since_ns,
		       struct sidecar *side)
{
	int place = push_device(watch, idx, flags, side);
	struct sidecar_gpu *gpu = place >= 0 ? &side->gpus.data[place] : NULL;

	if (gpu != NULL && gpu->why[0] == '\0' && is_overwritten(watch, since_ns))
		(void)snprintf(gpu->why, sizeof(gpu->why),
			       "the window's beginning: too many samples");
	return place < 0 ? place : push_samples(watch, idx, (uint32_t)place, since_ns, side);
}

static bool uses(const struct gpuwatch *watch, uint32_t pid, uint32_t idx)
{
	for (size_t i = 0; i < watch->user_cnt; i++) {
		if (watch->users[i].pid == pid && watch->users[i].device == idx)
			return true;
	}
	return false;
}

static int take_devices(const struct gpuwatch *watch, const struct gpuwatch_worker *worker,
			struct sidecar *side)
{
	int ret = 0, found = 0;

	if (watch->device_cnt == 0)
		return push_none(side, watch->opened ? watch->why : "not looked for yet");
	for (uint32_t i = 0; i < watch->device_cnt && ret == 0; i++) {
		if (!uses(watch, worker->pid, i))
			continue;
		found++;
		ret = take_device(watch, i, 0, worker->since_ns, side);
	}
	if (found > 0 || ret < 0)
		return ret;
	/* In a container the driver lists pids of another namespace, or none. */
	if (worker->local_rank >= 0 && (size_t)worker->local_rank < watch->device_cnt)
		return take_device(watch, (uint32_t)worker->local_rank, SIDECAR_GPU_BY_RANK,
				   worker->since_ns, side);
	return push_none(side, "its process was not seen on a GPU");
}

int gpuwatch_take(struct gpuwatch *watch, const struct gpuwatch_worker *worker,
		  struct sidecar *side)
{
	int ret;

	if (watch == NULL)
		return push_none(side, "the GPUs were not sampled");
	(void)pthread_mutex_lock(&watch->lock);
	ret = take_devices(watch, worker, side);
	(void)pthread_mutex_unlock(&watch->lock);
	return ret;
}

bool gpuwatch_uses(struct gpuwatch *watch, uint32_t pid, uint32_t device)
{
	bool found;

	if (watch == NULL)
		return false;
	(void)pthread_mutex_lock(&watch->lock);
	found = uses(watch, pid, device);
	(void)pthread_mutex_unlock(&watch->lock);
	return found;
}

/* --- for /metrics --- */

void gpuwatch_state(struct gpuwatch *watch, struct gpuwatch_state *ret)
{
	*ret = (struct gpuwatch_state){ 0 };
	if (watch == NULL)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	ret->device_cnt = watch->device_cnt;
	memcpy(ret->devices, watch->devices, sizeof(ret->devices));
	memcpy(ret->values, watch->latest, sizeof(ret->values));
	memcpy(ret->fed, watch->fed, sizeof(ret->fed));
	ret->samplers = watch->samplers;
	ret->crashed = watch->crashed;
	ret->hung = watch->hung;
	(void)pthread_mutex_unlock(&watch->lock);
}
