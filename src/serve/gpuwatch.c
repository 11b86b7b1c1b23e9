/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gpuwatch.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct user {
	uint32_t pid, device;
};

struct fault {
	uint32_t device, number;
};

/* Everything but setup and hw is behind the lock; hw belongs to the thread. */
struct gpuwatch {
	struct gpuwatch_setup setup;
	struct gpuhw hw;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop, window, ended, opened;
	bool abandoned; /* nobody waits any more: the thread frees all */
	char why[GPUHW_WHY];
	struct gpuhw_device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
	struct user users[GPUWATCH_USERS_MAX];
	size_t user_cnt;
	struct fault faults[GPUWATCH_FAULTS_MAX];
	_Atomic uint32_t fault_cnt;	 /* written behind the lock, looked at without */
	struct sidecar_gpu_sample *ring; /* of ring_cnt; `gpu` is the driver's number */
	size_t ring_cnt;
	uint64_t pushed;
};

static void free_watch(struct gpuwatch *watch)
{
	(void)pthread_mutex_destroy(&watch->lock);
	(void)pthread_cond_destroy(&watch->changed);
	free(watch->ring);
	free(watch);
}

/* --- the thread --- */

static bool open_devices(struct gpuwatch *watch)
{
	char why[GPUHW_WHY] = "";
	size_t cnt = 0;
	struct sidecar_gpu_sample *ring = NULL;

	if (watch->setup.open(&watch->hw, why) == 0) {
		cnt = MIN(watch->hw.ops->count(watch->hw.state), (size_t)GPUHW_DEVICES_MAX);
		ring = calloc(cnt * GPUWATCH_RING_CNT, sizeof(*ring));
		if (ring == NULL)
			(void)snprintf(why, sizeof(why), "out of memory");
	}
	(void)pthread_mutex_lock(&watch->lock);
	watch->ring = ring;
	watch->ring_cnt = ring != NULL ? cnt * GPUWATCH_RING_CNT : 0;
	watch->device_cnt = ring != NULL ? cnt : 0;
	for (size_t i = 0; i < watch->device_cnt; i++)
		watch->devices[i] = *watch->hw.ops->device(watch->hw.state, i);
	watch->opened = true;
	memcpy(watch->why, why, sizeof(watch->why));
	(void)pthread_mutex_unlock(&watch->lock);
	return ring != NULL;
}

static void push_fault(struct gpuwatch *watch, uint32_t idx, const struct gpuhw_values *values)
{
	uint32_t cnt = atomic_load_explicit(&watch->fault_cnt, memory_order_relaxed);

	if ((values->set >> GPU_METRIC_FAULT & 1) == 0 || cnt == ARRAY_SIZE(watch->faults))
		return;
	watch->faults[cnt] = (struct fault){ idx, (uint32_t)values->values[GPU_METRIC_FAULT] };
	atomic_store_explicit(&watch->fault_cnt, cnt + 1, memory_order_relaxed);
}

static void push_values(struct gpuwatch *watch, uint32_t idx, int64_t time_ns,
			const struct gpuhw_values *values)
{
	(void)pthread_mutex_lock(&watch->lock);
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if ((values->set >> metric & 1) == 0)
			continue;
		watch->ring[watch->pushed++ % watch->ring_cnt] = (struct sidecar_gpu_sample){
			.time_ns = time_ns,
			.value = values->values[metric],
			.gpu = idx,
			.metric = metric,
		};
	}
	push_fault(watch, idx, values);
	watch->devices[idx] = *watch->hw.ops->device(watch->hw.state, idx);
	(void)pthread_mutex_unlock(&watch->lock);
}

/* The time of a value is between those before and after the call; the later is taken. */
static void look(struct gpuwatch *watch,
		 int (*sample)(void *state, size_t idx, struct gpuhw_values *ret))
{
	for (uint32_t i = 0; i < watch->device_cnt; i++) {
		struct gpuhw_values values = { 0 };

		if (sample(watch->hw.state, i, &values) < 0)
			values.set = 0;
		push_values(watch, i, clock_mono_ns(), &values);
	}
}

static void look_users(struct gpuwatch *watch)
{
	struct user users[GPUWATCH_USERS_MAX];
	uint32_t pids[64];
	size_t cnt = 0;

	for (uint32_t i = 0; i < watch->device_cnt; i++) {
		size_t found = watch->hw.ops->users(watch->hw.state, i, pids, ARRAY_SIZE(pids));

		for (size_t p = 0; p < found && cnt < ARRAY_SIZE(users); p++)
			users[cnt++] = (struct user){ pids[p], i };
	}
	(void)pthread_mutex_lock(&watch->lock);
	memcpy(watch->users, users, cnt * sizeof(*users));
	watch->user_cnt = cnt;
	(void)pthread_mutex_unlock(&watch->lock);
}

/* Sleeps until a time or until something is wanted. Returns whether to go on. */
static bool wait_until(struct gpuwatch *watch, int64_t slow_due_ns, int64_t fast_due_ns,
		       bool *ret_window)
{
	bool window = *ret_window, go_on;
	int64_t due_ns = window ? MIN(slow_due_ns, fast_due_ns) : slow_due_ns;
	struct timespec due = { due_ns / NSEC_PER_SEC, due_ns % NSEC_PER_SEC };

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->stop && watch->window == window &&
	       pthread_cond_timedwait(&watch->changed, &watch->lock, &due) == 0)
		;
	*ret_window = watch->window;
	go_on = !watch->stop;
	(void)pthread_mutex_unlock(&watch->lock);
	return go_on;
}

static void watch_devices(struct gpuwatch *watch)
{
	int64_t slow_due_ns = clock_mono_ns(), fast_due_ns = slow_due_ns;
	bool window = false;

	while (wait_until(watch, slow_due_ns, fast_due_ns, &window)) {
		int64_t now_ns = clock_mono_ns();

		if (now_ns >= slow_due_ns) {
			look(watch, watch->hw.ops->slow);
			look_users(watch);
			slow_due_ns = now_ns + watch->setup.slow_ms * NSEC_PER_MSEC;
		}
		if (window && now_ns >= fast_due_ns) {
			look(watch, watch->hw.ops->fast);
			fast_due_ns = now_ns + watch->setup.fast_ms * NSEC_PER_MSEC;
		}
	}
}

static void *run_thread(void *arg)
{
	struct gpuwatch *watch = arg;
	bool abandoned;

	if (open_devices(watch))
		watch_devices(watch);
	gpuhw_close(&watch->hw);
	(void)pthread_mutex_lock(&watch->lock);
	watch->ended = true;
	abandoned = watch->abandoned;
	(void)pthread_cond_broadcast(&watch->changed);
	(void)pthread_mutex_unlock(&watch->lock);
	if (abandoned)
		free_watch(watch);
	return NULL;
}

/* --- the other side --- */

static int init_locks(struct gpuwatch *watch)
{
	pthread_condattr_t attributes;

	if (pthread_condattr_init(&attributes) != 0)
		return -ENOMEM;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&watch->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return pthread_mutex_init(&watch->lock, NULL) == 0 ? 0 : -ENOMEM;
}

/* Signals are the loop's. */
static int start_thread(struct gpuwatch *watch)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run_thread, watch);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0)
		(void)pthread_detach(thread);
	return -error;
}

struct gpuwatch *gpuwatch_start(const struct gpuwatch_setup *setup)
{
	struct gpuwatch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->setup = *setup;
	if (init_locks(watch) < 0) {
		free(watch);
		return NULL;
	}
	if (start_thread(watch) < 0) {
		free_watch(watch);
		return NULL;
	}
	return watch;
}

void gpuwatch_stop(struct gpuwatch *watch)
{
	int64_t due_ns = clock_mono_ns() + GPUWATCH_STOP_MS * NSEC_PER_MSEC;
	struct timespec due = { due_ns / NSEC_PER_SEC, due_ns % NSEC_PER_SEC };
	bool ended;

	if (watch == NULL)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->stop = true;
	(void)pthread_cond_broadcast(&watch->changed);
	while (!watch->ended && pthread_cond_timedwait(&watch->changed, &watch->lock, &due) == 0)
		;
	ended = watch->ended;
	watch->abandoned = !ended;
	(void)pthread_mutex_unlock(&watch->lock);
	if (ended)
		free_watch(watch);
}

void gpuwatch_set_window(struct gpuwatch *watch, bool open)
{
	if (watch == NULL)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->window = open;
	(void)pthread_cond_broadcast(&watch->changed);
	(void)pthread_mutex_unlock(&watch->lock);
}

bool gpuwatch_next_fault(struct gpuwatch *watch, uint32_t *ret_device, uint32_t *ret_number)
{
	uint32_t cnt;

	if (watch == NULL || atomic_load_explicit(&watch->fault_cnt, memory_order_relaxed) == 0)
		return false;
	(void)pthread_mutex_lock(&watch->lock);
	cnt = atomic_load_explicit(&watch->fault_cnt, memory_order_relaxed) - 1;
	*ret_device = watch->faults[0].device;
	*ret_number = watch->faults[0].number;
	memmove(watch->faults, watch->faults + 1, cnt * sizeof(*watch->faults));
	atomic_store_explicit(&watch->fault_cnt, cnt, memory_order_relaxed);
	(void)pthread_mutex_unlock(&watch->lock);
	return true;
}

static int push_none(struct sidecar *side, const char *why)
{
	struct sidecar_gpu none = { .index = SIDECAR_GPU_NONE };

	(void)snprintf(none.why, sizeof(none.why), "%s", why);
	return vec_push(&side->gpus, none);
}

/* Appends the record of a device. Returns its place among the worker's, or -ENOMEM. */
static int push_device(const struct gpuwatch *watch, uint32_t idx, uint32_t flags,
		       struct sidecar *side)
{
	const struct gpuhw_device *device = &watch->devices[idx];
	struct sidecar_gpu gpu = { .index = idx,
				   .flags = flags | (device->lost ? SIDECAR_GPU_LOST : 0),
				   .core_hz = device->core_hz,
				   .pcie_bytes_per_sec = device->pcie_bytes_per_sec,
				   .link_bytes_per_sec = device->link_bytes_per_sec };

	_Static_assert(sizeof(gpu.why) >= sizeof(device->why), "room");
	memcpy(gpu.name, device->name, sizeof(gpu.name));
	memcpy(gpu.why, device->why, sizeof(device->why));
	if (vec_push(&side->gpus, gpu) < 0)
		return -ENOMEM;
	return (int)side->gpus.cnt - 1;
}

static int push_samples(const struct gpuwatch *watch, uint32_t idx, uint32_t place,
			int64_t since_ns, struct sidecar *side)
{
	int64_t slack_ns = watch->setup.slow_ms * NSEC_PER_MSEC;
	uint64_t first = watch->pushed > watch->ring_cnt ? watch->pushed - watch->ring_cnt : 0;
	int ret = 0;

	for (uint64_t i = first; i < watch->pushed && ret == 0; i++) {
		struct sidecar_gpu_sample sample = watch->ring[i % watch->ring_cnt];

		/* Counters are read once a second: the reading before tells how they began. */
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
	/* In a container the driver counts processes in other numbers, or shows none. */
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
		return push_none(side, "nobody looked");
	(void)pthread_mutex_lock(&watch->lock);
	ret = take_devices(watch, worker, side);
	(void)pthread_mutex_unlock(&watch->lock);
	return ret;
}
