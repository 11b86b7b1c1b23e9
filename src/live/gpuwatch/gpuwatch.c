/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "live/gpuwatch/gpuwatch_parts.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static void free_watch(struct gpuwatch *watch)
{
	(void)pthread_mutex_destroy(&watch->lock);
	(void)pthread_cond_destroy(&watch->changed);
	free(watch->ring);
	free(watch);
}

/* --- the thread --- */

/* The ring's capacity for PM sampling, in samples. */
static size_t feed_room(const struct gpuwatch *watch)
{
	size_t wanted = watch->setup.feed_cnt > 0 ? watch->setup.feed_cnt : GPUWATCH_FEED_CNT;

	return gpuwatch_has_feed(watch) ? wanted : 0;
}

static bool open_devices(struct gpuwatch *watch)
{
	char why[GPUHW_WHY] = "";
	size_t cnt = 0, room = 0, ring_cnt;
	struct sidecar_gpu_sample *ring = NULL;

	if (watch->setup.open(&watch->hw, why) == 0)
		cnt = room = MIN(watch->hw.ops->count(watch->hw.state), (size_t)GPUHW_DEVICES_MAX);
	else if (watch->setup.feed.shared)
		room = GPUHW_DEVICES_MAX; /* a shared sampler's pieces name the devices */
	ring_cnt = room * GPUWATCH_RING_CNT + feed_room(watch);
	if (room > 0) {
		ring = calloc(ring_cnt, sizeof(*ring));
		if (ring == NULL)
			(void)snprintf(why, sizeof(why), "out of memory");
	}
	(void)pthread_mutex_lock(&watch->lock);
	watch->ring = ring;
	watch->ring_cnt = ring != NULL ? ring_cnt : 0;
	watch->device_cnt = ring != NULL ? cnt : 0;
	for (size_t i = 0; i < watch->device_cnt; i++)
		watch->devices[i] = *watch->hw.ops->device(watch->hw.state, i);
	watch->opened = true;
	memcpy(watch->why, why, sizeof(watch->why));
	(void)pthread_mutex_unlock(&watch->lock);
	return ring != NULL;
}

static void push_sample(struct gpuwatch *watch, const struct sidecar_gpu_sample *sample)
{
	watch->ring[watch->pushed++ % watch->ring_cnt] = *sample;
}

static void push_value(struct gpuwatch *watch, const struct sidecar_gpu_sample *sample)
{
	push_sample(watch, sample);
	gpuhw_set(&watch->latest[sample->gpu], (enum gpu_metric)sample->metric, sample->value);
}

/* Adds a fault to the samples and to the list for gpuwatch_next_fault(). */
static void push_fault(struct gpuwatch *watch, uint32_t idx, int64_t time_ns, uint32_t number)
{
	uint32_t cnt = atomic_load_explicit(&watch->fault_cnt, memory_order_relaxed);

	push_sample(watch, &(struct sidecar_gpu_sample){ .time_ns = time_ns,
							 .value = number,
							 .gpu = idx,
							 .metric = GPU_METRIC_FAULT });
	if (cnt == ARRAY_SIZE(watch->faults))
		return;
	watch->faults[cnt] = (struct gpu_fault){ idx, number };
	atomic_store_explicit(&watch->fault_cnt, cnt + 1, memory_order_relaxed);
}

/* Drops slower samples of a metric that PM sampling provides. */
static void push_values(struct gpuwatch *watch, uint32_t idx, int64_t time_ns,
			const struct gpuhw_values *values)
{
	(void)pthread_mutex_lock(&watch->lock);
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		struct sidecar_gpu_sample sample = { .time_ns = time_ns,
						     .value = values->values[metric],
						     .gpu = idx,
						     .metric = metric };

		if (((values->set & ~watch->fed[idx]) >> metric & 1) != 0)
			push_value(watch, &sample);
	}
	for (uint32_t i = 0; i < values->fault_cnt; i++)
		push_fault(watch, idx, time_ns, values->faults[i]);
	watch->devices[idx] = *watch->hw.ops->device(watch->hw.state, idx);
	(void)pthread_mutex_unlock(&watch->lock);
}

/* A value was read at some time during the call; the time after it is recorded. */
static void look(struct gpuwatch *watch,
		 int (*sample)(void *state, size_t idx, struct gpuhw_values *ret))
{
	for (uint32_t i = 0; i < watch->device_cnt; i++) {
		struct gpuhw_values values = { 0 };

		if (sample(watch->hw.state, i, &values) < 0)
			values = (struct gpuhw_values){ 0 };
		push_values(watch, i, clock_mono_ns(), &values);
	}
}

static void look_users(struct gpuwatch *watch)
{
	struct gpu_user users[GPUWATCH_USERS_MAX];
	uint32_t pids[64];
	size_t cnt = 0;

	for (uint32_t i = 0; i < watch->device_cnt; i++) {
		size_t found = watch->hw.ops->users(watch->hw.state, i, pids, ARRAY_SIZE(pids));

		for (size_t p = 0; p < found && cnt < ARRAY_SIZE(users); p++)
			users[cnt++] = (struct gpu_user){ pids[p], i };
	}
	(void)pthread_mutex_lock(&watch->lock);
	memcpy(watch->users, users, cnt * sizeof(*users));
	watch->user_cnt = cnt;
	(void)pthread_mutex_unlock(&watch->lock);
}

/* --- PM sampling --- */

/* Lock held. The piece's device, added if there is no driver. GPUHW_DEVICES_MAX: unknown. */
static uint32_t device_of(struct gpuwatch *watch, const struct sidecar_gpu *gpu, const char *uuid)
{
	struct gpuhw_device *added;

	for (uint32_t i = 0; i < watch->device_cnt; i++) {
		const struct gpuhw_device *device = &watch->devices[i];

		if (device->uuid[0] != '\0' && uuid[0] != '\0'
			    ? strcmp(device->uuid, uuid) == 0
			    : watch->hw.ops != NULL && gpu->index == i)
			return i;
	}
	if (watch->hw.ops != NULL || watch->device_cnt == GPUHW_DEVICES_MAX)
		return GPUHW_DEVICES_MAX;
	added = &watch->devices[watch->device_cnt];
	(void)snprintf(added->name, sizeof(added->name), "GPU");
	(void)snprintf(added->uuid, sizeof(added->uuid), "%s", uuid);
	return (uint32_t)watch->device_cnt++;
}

static const char *uuid_of(const struct sidecar *piece, uint32_t gpu)
{
	vec_foreach(id, &piece->gpu_ids) {
		if (id->gpu == gpu)
			return id->uuid;
	}
	return "";
}

static bool has_samples(const struct sidecar *piece, uint32_t gpu)
{
	vec_foreach(sample, &piece->gpu_samples) {
		if (sample->gpu == gpu)
			return true;
	}
	return false;
}

static void say_why(struct gpuwatch *watch, uint32_t idx, const char *why)
{
	(void)snprintf(watch->feed_why[idx], sizeof(watch->feed_why[idx]), "%s", why);
}

/* Lock held. Marks PM sampling of this device as off until its next piece. */
static void starve(struct gpuwatch *watch, uint32_t idx, const char *why)
{
	watch->fed[idx] = 0;
	say_why(watch, idx, why);
}

static void starve_all(struct gpuwatch *watch, const char *why)
{
	for (uint32_t i = 0; i < GPUHW_DEVICES_MAX; i++)
		starve(watch, i, why);
}

/* The samples that a piece has of one metric of a device. */
struct piece_sum {
	double sum;
	uint32_t cnt;
};

/* Lock held. The latest value is the mean of a piece: one of 10,000 samples a second is noise. */
static void set_latest(struct gpuwatch *watch, struct piece_sum (*sums)[GPU_METRIC_CNT])
{
	for (size_t gpu = 0; gpu < GPUHW_DEVICES_MAX; gpu++) {
		for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
			const struct piece_sum *s = &sums[gpu][metric];

			if (s->cnt > 0)
				gpuhw_set(&watch->latest[gpu], (enum gpu_metric)metric,
					  s->sum / s->cnt);
		}
	}
}

/* Lock held. places: indexes into watch->devices of the piece's devices. */
static void take_samples(struct gpuwatch *watch, const struct sidecar *piece,
			 const uint32_t places[static SIDECAR_GPUS_MAX])
{
	size_t gpu_cnt = MIN(piece->gpus.cnt, (size_t)SIDECAR_GPUS_MAX);
	struct piece_sum sums[GPUHW_DEVICES_MAX][GPU_METRIC_CNT] = { 0 };

	vec_foreach(s, &piece->gpu_samples) {
		struct sidecar_gpu_sample sample = *s;

		if (s->gpu >= gpu_cnt || s->metric >= GPU_METRIC_CNT || !isfinite(s->value) ||
		    places[s->gpu] >= watch->device_cnt)
			continue;
		sample.gpu = places[s->gpu];
		push_sample(watch, &sample);
		sums[sample.gpu][sample.metric].sum += sample.value;
		sums[sample.gpu][sample.metric].cnt++;
		watch->fed[sample.gpu] |= 1ULL << sample.metric;
	}
	set_latest(watch, sums);
}

static void take_piece(void *arg, const struct sidecar *piece)
{
	struct gpuwatch *watch = arg;
	uint32_t places[SIDECAR_GPUS_MAX];

	_Static_assert(SIDECAR_GPUS_MAX == GPUHW_DEVICES_MAX, "a place for each");
	(void)pthread_mutex_lock(&watch->lock);
	for (uint32_t i = 0; i < MIN(piece->gpus.cnt, (size_t)SIDECAR_GPUS_MAX); i++) {
		const struct sidecar_gpu *gpu = &piece->gpus.data[i];

		places[i] = GPUHW_DEVICES_MAX;
		if (gpu->index == SIDECAR_GPU_NONE) {
			starve_all(watch, gpu->why);
			continue;
		}
		places[i] = device_of(watch, gpu, uuid_of(piece, i));
		if (places[i] < GPUHW_DEVICES_MAX && !has_samples(piece, i) && gpu->why[0] != '\0')
			starve(watch, places[i], gpu->why);
		else if (places[i] < GPUHW_DEVICES_MAX)
			say_why(watch, places[i], gpu->why);
	}
	take_samples(watch, piece, places);
	watch->fed_ns = clock_mono_ns();
	(void)pthread_mutex_unlock(&watch->lock);
}

static void begin_feed(struct gpuwatch *watch)
{
	const char *where = watch->setup.feed.shared ? "PM sampling: no sampler writes there"
						     : "PM sampling had not begun";
	int error = gpufeed_begin(&watch->feed);

	(void)pthread_mutex_lock(&watch->lock);
	watch->fed_ns = clock_mono_ns();
	if (error != -EBUSY)
		starve_all(watch, error < 0 ? "PM sampling: no process could be started" : where);
	(void)pthread_mutex_unlock(&watch->lock);
}

/* Returns the metrics of silent PM sampling to the slower samples. */
static void mind_feed(struct gpuwatch *watch)
{
	bool silent;

	(void)pthread_mutex_lock(&watch->lock);
	silent = clock_mono_ns() - watch->fed_ns > FEED_SILENT_NS;
	for (uint32_t i = 0; i < GPUHW_DEVICES_MAX; i++) {
		if (silent && watch->fed[i] != 0)
			starve(watch, i, "PM sampling fell silent");
	}
	watch->samplers = watch->feed.started;
	watch->crashed = watch->feed.crashed;
	watch->hung = watch->feed.hung;
	(void)pthread_mutex_unlock(&watch->lock);
}

static void look_at_feed(struct gpuwatch *watch, bool window)
{
	if (window && !watch->feed.open)
		begin_feed(watch);
	if (window) {
		(void)gpufeed_read(&watch->feed, take_piece, watch);
	} else {
		gpufeed_end(&watch->feed);
		gpufeed_mind(&watch->feed);
	}
	mind_feed(watch);
}

/* --- the loop --- */

/* Lock held. */
static bool is_window(const struct gpuwatch *watch)
{
	return watch->window || clock_mono_ns() < watch->expected_ns;
}

/* Sleeps until a time or a change of the wanted state. Returns whether to go on. */
static bool wait_until(struct gpuwatch *watch, int64_t slow_due_ns, int64_t fast_due_ns,
		       bool *ret_window)
{
	bool window = *ret_window, go_on;
	int64_t due_ns = window ? MIN(slow_due_ns, fast_due_ns) : slow_due_ns;
	struct timespec due = { due_ns / NSEC_PER_SEC, due_ns % NSEC_PER_SEC };

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->stop && is_window(watch) == window &&
	       pthread_cond_timedwait(&watch->changed, &watch->lock, &due) == 0)
		;
	*ret_window = is_window(watch);
	go_on = !watch->stop;
	(void)pthread_mutex_unlock(&watch->lock);
	return go_on;
}

/* Shares and rates are only measured in windows: drops those of the last window. */
static void forget_fast(struct gpuwatch *watch)
{
	uint64_t slow = (1ULL << GPU_METRIC_ACTIVE) - 1;

	for (uint32_t metric = GPU_METRIC_ACTIVE; metric < GPU_METRIC_CNT; metric++)
		slow |= (uint64_t)gpu_metric_is_counter(metric) << metric;
	(void)pthread_mutex_lock(&watch->lock);
	for (uint32_t i = 0; i < GPUHW_DEVICES_MAX; i++)
		watch->latest[i].set &= slow;
	(void)pthread_mutex_unlock(&watch->lock);
}

/* Returns the CPU time that it took. */
static int64_t look_slowly(struct gpuwatch *watch)
{
	int64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);

	if (watch->hw.ops == NULL)
		return 0;
	look(watch, watch->hw.ops->slow);
	look_users(watch);
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

int64_t gpuwatch_slow_gap_ns(const struct gpuwatch *watch, bool window, int64_t cost_ns)
{
	int64_t least_ns = watch->setup.slow_ms * NSEC_PER_MSEC;
	double spread_ns =
		(double)cost_ns / GPUWATCH_SLOW_COST / (double)MAX(watch->device_cnt, (size_t)1);

	if (window || spread_ns <= (double)least_ns)
		return least_ns;
	return (int64_t)MIN(spread_ns, GPUWATCH_SLOW_MOST_MS * (double)NSEC_PER_MSEC);
}

static void watch_devices(struct gpuwatch *watch)
{
	int64_t slow_due_ns = clock_mono_ns(), fast_due_ns = slow_due_ns, feed_due_ns = slow_due_ns;
	/* Of the last slow look; the first is due at once. */
	int64_t slow_ns = slow_due_ns - gpuwatch_slow_gap_ns(watch, false, 0), cost_ns = 0;
	bool window = false;

	while (wait_until(watch, slow_due_ns, MIN(fast_due_ns, feed_due_ns), &window)) {
		int64_t now_ns = clock_mono_ns();

		if (!window)
			forget_fast(watch);
		if (gpuwatch_has_feed(watch))
			look_at_feed(watch, window);
		feed_due_ns = gpuwatch_has_feed(watch) ? now_ns + GPUWATCH_FEED_MS * NSEC_PER_MSEC
						       : INT64_MAX;
		if (now_ns >= slow_ns + gpuwatch_slow_gap_ns(watch, window, cost_ns)) {
			cost_ns = look_slowly(watch);
			slow_ns = now_ns;
		}
		slow_due_ns = slow_ns + gpuwatch_slow_gap_ns(watch, window, cost_ns);
		if (window && now_ns >= fast_due_ns) {
			if (watch->hw.ops != NULL)
				look(watch, watch->hw.ops->fast);
			fast_due_ns = now_ns + watch->setup.fast_ms * NSEC_PER_MSEC;
		}
	}
	gpufeed_end(&watch->feed);
}

static void *run_thread(void *arg)
{
	struct gpuwatch *watch = arg;
	bool abandoned;

	(void)prctl(PR_SET_NAME, "pt-gpuwatch");
	if (watch->setup.recover)
		gpusampler_recover();
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

/* Signals are handled by the loop's thread. */
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

/* An abandoned thread outlives the caller's strings. */
static void copy_strings(struct gpuwatch *watch)
{
	struct gpufeed_setup *feed = &watch->setup.feed;

	if (feed->program != NULL)
		(void)snprintf(watch->program, sizeof(watch->program), "%s", feed->program);
	if (feed->dir != NULL)
		(void)snprintf(watch->dir, sizeof(watch->dir), "%s", feed->dir);
	feed->program = feed->program != NULL ? watch->program : NULL;
	feed->dir = watch->dir;
}

struct gpuwatch *gpuwatch_start(const struct gpuwatch_setup *setup)
{
	struct gpuwatch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->setup = *setup;
	copy_strings(watch);
	gpufeed_init(&watch->setup.feed, &watch->feed);
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
	watch->expected_ns = 0;
	(void)pthread_cond_broadcast(&watch->changed);
	(void)pthread_mutex_unlock(&watch->lock);
}

void gpuwatch_expect(struct gpuwatch *watch, int64_t for_ns)
{
	if (watch == NULL)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->expected_ns = for_ns > 0 ? clock_mono_ns() + for_ns : 0;
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
