/* SPDX-License-Identifier: Apache-2.0 */
#include "live/gpuwatch/gpuwatch.h"

#include "base/clock.h"
#include "host/process/test_tree.h"
#include "live/gpuwatch/gpuwatch_parts.h"

#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Three GPUs; the third answers no more, the second is used by process 71. */
static struct {
	_Atomic int slow, fast, closed, hung, faults;
	_Atomic bool hang;
	sem_t go_on;
	struct gpuhw_device devices[3];
} fake;

static int fake_open(void **ret_state, char why[static GPUHW_WHY])
{
	(void)why;
	*ret_state = &fake;
	return 0;
}

static void fake_close(void *state _unused_)
{
	fake.closed++;
}

static size_t fake_count(const void *state _unused_)
{
	return ARRAY_SIZE(fake.devices);
}

static const struct gpuhw_device *fake_device(const void *state _unused_, size_t idx)
{
	return &fake.devices[idx];
}

static int fake_slow(void *state _unused_, size_t idx, struct gpuhw_values *ret)
{
	if (fake.hang) {
		fake.hung++;
		(void)sem_wait(&fake.go_on);
	}
	if (idx == 2)
		return -ENODEV;
	while (idx == 1 && fake.faults > 0 && ret->fault_cnt < 2)
		ret->faults[ret->fault_cnt++] = (uint32_t)(70 + --fake.faults);
	gpuhw_set(ret, GPU_METRIC_POWER, 100 * (double)(idx + 1));
	fake.slow++;
	return 0;
}

static int fake_fast(void *state _unused_, size_t idx, struct gpuhw_values *ret)
{
	if (idx == 2)
		return -ENODEV;
	gpuhw_set(ret, GPU_METRIC_CORES_ACTIVE, 0.25 * (double)(idx + 1));
	fake.fast++;
	return 0;
}

static size_t fake_users(void *state _unused_, size_t idx, uint32_t *ret_pids, size_t cap _unused_)
{
	ret_pids[0] = 71;
	return idx == 1;
}

static const struct gpuhw_ops fake_ops = { "fake",	fake_open, fake_close, fake_count,
					   fake_device, fake_slow, fake_fast,  fake_users };

static int open_fake(struct gpuhw *hw, char why[static GPUHW_WHY])
{
	(void)why;
	*hw = (struct gpuhw){ &fake_ops, &fake };
	return 0;
}

static int open_nothing(struct gpuhw *hw, char why[static GPUHW_WHY])
{
	*hw = (struct gpuhw){ 0 };
	(void)snprintf(why, GPUHW_WHY, "no library");
	return -ENODEV;
}

static int reset(void **state _unused_)
{
	memset(&fake, 0, sizeof(fake));
	fake.devices[2].lost = true;
	(void)snprintf(fake.devices[1].name, sizeof(fake.devices[1].name), "GPU of 71");
	return sem_init(&fake.go_on, 0, 0);
}

static struct gpuwatch *start(int (*open)(struct gpuhw *, char *))
{
	struct gpuwatch *watch = gpuwatch_start(
		&(struct gpuwatch_setup){ .open = open, .slow_ms = 1, .fast_ms = 1 });

	assert_non_null(watch);
	return watch;
}

/* Waits without a limit. */
static void wait_for(_Atomic int *value, int least)
{
	while (*value < least)
		(void)usleep(1000);
}

static struct sidecar take(struct gpuwatch *watch, uint32_t pid, int32_t local_rank)
{
	struct sidecar side = { 0 };
	const struct gpuwatch_worker worker = { pid, local_rank, 0 };

	assert_int_equal(gpuwatch_take(watch, &worker, &side), 0);
	return side;
}

static void looks_that_cost_much_are_rare_between_windows(void **state _unused_)
{
	static struct gpuwatch watch = { .setup = { .slow_ms = GPUWATCH_SLOW_MS },
					 .device_cnt = 8 };
	const int64_t second_ns = NSEC_PER_SEC, ms_ns = NSEC_PER_MSEC;

	assert_int_equal(gpuwatch_slow_gap_ns(&watch, false, 0), second_ns);
	assert_int_equal(gpuwatch_slow_gap_ns(&watch, false, 8 * ms_ns), second_ns);
	assert_int_equal(gpuwatch_slow_gap_ns(&watch, false, 36 * ms_ns), 4500 * ms_ns);
	assert_int_equal(gpuwatch_slow_gap_ns(&watch, false, 36 * second_ns), 10 * second_ns);
	assert_int_equal(gpuwatch_slow_gap_ns(&watch, true, 36 * second_ns), second_ns);
	watch.device_cnt = 0; /* a shared sampler's alone */
	assert_int_equal(gpuwatch_slow_gap_ns(&watch, false, 0), second_ns);
}

static void a_worker_gets_the_samples_of_the_gpu_it_uses(void **state _unused_)
{
	struct gpuwatch *watch = start(open_fake);
	bool power = false, active = false;
	struct sidecar side;

	gpuwatch_set_window(watch, true);
	wait_for(&fake.slow, 8);
	wait_for(&fake.fast, 8);
	side = take(watch, 71, 0);
	assert_int_equal(side.gpus.cnt, 1);
	assert_int_equal(side.gpus.data[0].index, 1);
	assert_int_equal(side.gpus.data[0].flags, 0);
	assert_string_equal(side.gpus.data[0].name, "GPU of 71");
	vec_foreach(sample, &side.gpu_samples) {
		assert_int_equal(sample->gpu, 0);
		if (sample->metric == GPU_METRIC_POWER)
			assert_true(sample->value > 199 && sample->value < 201);
		power |= sample->metric == GPU_METRIC_POWER;
		active |= sample->metric == GPU_METRIC_CORES_ACTIVE;
		assert_true(sample == side.gpu_samples.data ||
			    sample[-1].time_ns <= sample->time_ns);
	}
	assert_true(power && active);
	sidecar_done(&side);
	gpuwatch_stop(watch);
	assert_int_equal(fake.closed, 1);
}

static void a_worker_that_is_not_seen_gets_that_of_its_local_rank(void **state _unused_)
{
	struct gpuwatch *watch = start(open_fake);
	struct sidecar side;

	wait_for(&fake.slow, 4);
	side = take(watch, 99, 2);
	assert_int_equal(side.gpus.data[0].index, 2);
	assert_int_equal(side.gpus.data[0].flags, SIDECAR_GPU_BY_RANK | SIDECAR_GPU_LOST);
	assert_int_equal(side.gpu_samples.cnt, 0);
	sidecar_done(&side);
	side = take(watch, 99, 3);
	assert_int_equal(side.gpus.data[0].index, SIDECAR_GPU_NONE);
	assert_string_equal(side.gpus.data[0].why, "its process was not seen on a GPU");
	sidecar_done(&side);
	gpuwatch_stop(watch);
}

static void fast_samples_are_taken_in_windows_only(void **state _unused_)
{
	struct gpuwatch *watch = start(open_fake);

	wait_for(&fake.slow, 8);
	assert_int_equal(fake.fast, 0);
	gpuwatch_stop(watch);
}

static void samples_before_the_window_are_left_out(void **state _unused_)
{
	struct gpuwatch *watch = start(open_fake);
	struct sidecar side = { 0 };
	const struct gpuwatch_worker worker = { 71, 0, INT64_MAX };

	wait_for(&fake.slow, 8);
	assert_int_equal(gpuwatch_take(watch, &worker, &side), 0);
	assert_int_equal(side.gpus.cnt, 1);
	assert_int_equal(side.gpu_samples.cnt, 0);
	sidecar_done(&side);
	gpuwatch_stop(watch);
}

static void faults_are_handed_over_once_in_their_order(void **state _unused_)
{
	struct gpuwatch *watch;
	uint32_t device = 0, number = 0;

	assert_false(gpuwatch_next_fault(NULL, &device, &number));
	fake.faults = 100; /* more than are kept */
	watch = start(open_fake);
	while (fake.faults > 0)
		(void)usleep(1000);
	wait_for(&fake.slow, fake.slow + 4);
	for (uint32_t i = 0; i < GPUWATCH_FAULTS_MAX; i++) {
		assert_true(gpuwatch_next_fault(watch, &device, &number));
		assert_int_equal(device, 1);
		assert_int_equal(number, 70 + 99 - i);
	}
	assert_false(gpuwatch_next_fault(watch, &device, &number));
	gpuwatch_stop(watch);
}

static void a_host_without_gpus_says_why(void **state _unused_)
{
	struct gpuwatch *watch = start(open_nothing);
	struct sidecar side;

	do {
		side = take(watch, 71, 0);
		assert_int_equal(side.gpus.cnt, 1);
		assert_int_equal(side.gpus.data[0].index, SIDECAR_GPU_NONE);
		if (strcmp(side.gpus.data[0].why, "not looked for yet") == 0) {
			sidecar_done(&side);
			(void)usleep(1000);
		}
	} while (side.gpus.cnt == 0);
	assert_string_equal(side.gpus.data[0].why, "no library");
	sidecar_done(&side);
	gpuwatch_stop(watch);
	side = take(NULL, 71, 0);
	assert_string_equal(side.gpus.data[0].why, "the GPUs were not sampled");
	sidecar_done(&side);
	gpuwatch_stop(NULL);
}

static void a_driver_that_hangs_delays_no_caller(void **state _unused_)
{
	struct gpuwatch *watch;
	struct sidecar side;

	fake.hang = true;
	watch = start(open_fake);
	wait_for(&fake.hung, 1);
	side = take(watch, 71, 1);
	assert_int_equal(side.gpus.cnt, 1);
	sidecar_done(&side);
	gpuwatch_set_window(watch, true);
	gpuwatch_stop(watch);
	assert_int_equal(fake.closed, 0);
	fake.hang = false; /* the call returns: the thread ends and frees the rest */
	assert_int_equal(sem_post(&fake.go_on), 0);
	wait_for(&fake.closed, 1);
	(void)usleep(10000); /* for a leak checker to see that it is freed */
}

/* --- PM sampling, from a folder that the test writes to --- */

static struct gpushare_writer share;

static int reset_share(void **state)
{
	if (make_root(state) < 0 || reset(state) < 0)
		return -1;
	(void)snprintf(fake.devices[0].uuid, GPUHW_UUID, "0-0");
	(void)snprintf(fake.devices[1].uuid, GPUHW_UUID, "1-1");
	(void)snprintf(fake.devices[1].why, GPUHW_WHY, "no fast samples");
	return gpushare_create(*state, true, &share, NULL);
}

static int end_share(void **state)
{
	gpushare_close_writer(&share);
	return remove_root(state);
}

static struct gpuwatch *start_shared(const char *dir, int (*open)(struct gpuhw *, char *))
{
	struct gpuwatch *watch =
		gpuwatch_start(&(struct gpuwatch_setup){ .open = open,
							 .slow_ms = 1,
							 .fast_ms = 1,
							 .feed = { .dir = dir, .shared = true },
							 .feed_cnt = 1 });

	assert_non_null(watch);
	gpuwatch_set_window(watch, true);
	while (!gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	return watch;
}

/* A piece of one sample of the device with this id, which the other driver calls GPU 5. */
static void feed(const char *uuid, double value, const char *why)
{
	int64_t now_ns = clock_mono_ns();
	struct sidecar piece = { .header = { .mono_ns = now_ns, .wall_ns = clock_wall_ns() } };
	struct sidecar_gpu gpu = { .index = 5 };
	struct sidecar_gpu_id id = { .gpu = 0 };
	struct sidecar_gpu_sample samples[] = {
		{ .time_ns = now_ns, .value = value, .metric = GPU_METRIC_CORES_ACTIVE },
		{ .time_ns = now_ns, .value = 7, .gpu = 1, .metric = GPU_METRIC_CORES_ACTIVE },
		{ .time_ns = now_ns, .value = 7, .metric = GPU_METRIC_CNT },
		{ .time_ns = now_ns, .value = (double)NAN, .metric = GPU_METRIC_ACTIVE },
	};

	(void)snprintf(gpu.why, sizeof(gpu.why), "%s", why);
	(void)snprintf(id.uuid, sizeof(id.uuid), "%s", uuid);
	assert_int_equal(vec_push(&piece.gpus, gpu), 0);
	assert_int_equal(vec_push(&piece.gpu_ids, id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(samples) && why[0] == '\0'; i++)
		assert_int_equal(vec_push(&piece.gpu_samples, samples[i]), 0);
	assert_int_equal(gpushare_write(&share, &piece), 0);
	sidecar_done(&piece);
}

static void feed_nothing(const char *why)
{
	struct sidecar piece = { .header = { .mono_ns = clock_mono_ns(),
					     .wall_ns = clock_wall_ns() } };
	struct sidecar_gpu none = { .index = SIDECAR_GPU_NONE };

	(void)snprintf(none.why, sizeof(none.why), "%s", why);
	assert_int_equal(vec_push(&piece.gpus, none), 0);
	assert_int_equal(gpushare_write(&share, &piece), 0);
	sidecar_done(&piece);
}

/* Nothing was to be read in these 50 ms. */
static void feed_empty(const char *uuid)
{
	struct sidecar piece = { .header = { .mono_ns = clock_mono_ns(),
					     .wall_ns = clock_wall_ns() } };
	struct sidecar_gpu_id id = { .gpu = 0 };

	(void)snprintf(id.uuid, sizeof(id.uuid), "%s", uuid);
	assert_int_equal(vec_push(&piece.gpus, (struct sidecar_gpu){ .index = 5 }), 0);
	assert_int_equal(vec_push(&piece.gpu_ids, id), 0);
	assert_int_equal(gpushare_write(&share, &piece), 0);
	sidecar_done(&piece);
}

static bool is_fed(struct gpuwatch *watch, uint32_t idx)
{
	struct gpuwatch_state state;

	gpuwatch_state(watch, &state);
	return idx < state.device_cnt && state.fed[idx] != 0;
}

static void await_feed(struct gpuwatch *watch, uint32_t idx, bool fed)
{
	while (is_fed(watch, idx) != fed)
		(void)usleep(1000);
}

static bool has_reason(struct gpuwatch *watch, const char *expected)
{
	struct sidecar side = take(watch, 71, 0);
	bool found = strcmp(side.gpus.data[0].why, expected) == 0;

	sidecar_done(&side);
	return found;
}

static void await_reason(struct gpuwatch *watch, const char *expected)
{
	while (!has_reason(watch, expected))
		(void)usleep(1000);
}

static void samples_at_khz_take_the_place_of_slower_ones(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);
	struct sidecar side = { 0 };
	int fed = 0, slower = 0;
	int64_t fed_ns;

	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	assert_false(is_fed(watch, 0));
	fed_ns = clock_mono_ns();
	wait_for(&fake.fast, fake.fast + 20);
	assert_int_equal(gpuwatch_take(watch, &(struct gpuwatch_worker){ 71, 0, 0 }, &side), 0);
	assert_int_equal(side.gpus.cnt, 1);
	assert_string_equal(side.gpus.data[0].why,
			    ""); /* a metric that the driver lacks is not reported */
	vec_foreach(s, &side.gpu_samples) {
		bool cores = s->metric == GPU_METRIC_CORES_ACTIVE;

		assert_true(s->metric < GPU_METRIC_CNT && s->metric != GPU_METRIC_ACTIVE);
		fed += cores && s->value > 0.8;
		slower += cores && s->value < 0.8 && s->time_ns > fed_ns;
	}
	assert_int_equal(fed, 1);
	if (clock_mono_ns() - fed_ns < NSEC_PER_SEC) /* else PM sampling has become silent */
		assert_int_equal(slower, 0);
	sidecar_done(&side);
	gpuwatch_stop(watch);
}

/* /metrics shows the mean: one of 10,000 samples a second would be random. */
static void the_latest_of_fine_samples_is_a_mean(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_nothing);
	struct sidecar piece = { .header = { .mono_ns = clock_mono_ns(),
					     .wall_ns = clock_wall_ns() } };
	struct gpuwatch_state seen;

	assert_int_equal(vec_push(&piece.gpus, (struct sidecar_gpu){ .index = 0 }), 0);
	for (int i = 0; i < 500; i++) {
		struct sidecar_gpu_sample sample = { .time_ns = piece.header.mono_ns,
						     .value = i % 2,
						     .metric = GPU_METRIC_CORES_ACTIVE };

		assert_int_equal(vec_push(&piece.gpu_samples, sample), 0);
	}
	assert_int_equal(gpushare_write(&share, &piece), 0);
	sidecar_done(&piece);
	await_feed(watch, 0, true);
	gpuwatch_state(watch, &seen);
	assert_true(fabs(seen.values[0].values[GPU_METRIC_CORES_ACTIVE] - 0.5) < 1e-9);
	gpuwatch_stop(watch);
}

static void slower_samples_replace_a_sampler_without_samples(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);

	await_reason(watch, "PM sampling: no sampler writes there; no fast samples");
	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	feed_nothing("crashed");
	await_feed(watch, 1, false);
	await_reason(watch, "crashed; no fast samples");
	feed("1-1", 0, "not this one");
	await_reason(watch, "not this one; no fast samples");
	gpuwatch_stop(watch);
}

static void a_piece_without_samples_changes_nothing(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);
	int64_t fed_ns;

	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	fed_ns = clock_mono_ns();
	feed_empty("1-1");
	feed("0-0", 0.875, "");
	await_feed(watch, 0, true);
	if (clock_mono_ns() - fed_ns < NSEC_PER_SEC) /* else PM sampling has become silent */
		assert_true(is_fed(watch, 1));
	gpuwatch_stop(watch);
}

static void a_sampler_that_falls_silent_is_noticed(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);

	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	await_feed(watch, 1, false);
	await_reason(watch, "PM sampling fell silent; no fast samples");
	gpuwatch_stop(watch);
}

static void overwritten_samples_are_reported(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);
	int64_t begun_ns = clock_mono_ns();
	struct sidecar side = { 0 };

	for (int i = 0; i < 3; i++) {
		struct sidecar piece = { .header = { .mono_ns = clock_mono_ns(),
						     .wall_ns = clock_wall_ns() } };

		feed("1-1", 0.875, "");
		assert_int_equal(vec_push(&piece.gpus, (struct sidecar_gpu){ .index = 1 }), 0);
		for (uint32_t s = 0; s < GPUWATCH_RING_CNT; s++)
			assert_int_equal(vec_push(&piece.gpu_samples,
						  (struct sidecar_gpu_sample){
							  .time_ns = piece.header.mono_ns }),
					 0);
		assert_int_equal(gpushare_write(&share, &piece), 0);
		sidecar_done(&piece);
	}
	while (side.gpus.cnt == 0 || strstr(side.gpus.data[0].why, "too many") == NULL) {
		sidecar_done(&side);
		side = (struct sidecar){ .gpus = { 0 } };
		feed("1-1", 0.875, ""); /* PM sampling stays on */
		assert_int_equal(
			gpuwatch_take(watch, &(struct gpuwatch_worker){ 71, 0, begun_ns }, &side),
			0);
		(void)usleep(1000);
	}
	assert_true(side.gpu_samples.cnt <= 3 * GPUWATCH_RING_CNT + 1);
	sidecar_done(&side);
	gpuwatch_stop(watch);
}

static void devices_of_others_are_left_out(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);
	struct gpuwatch_state seen;

	feed("7-7", 0.875, "");
	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	gpuwatch_state(watch, &seen);
	assert_int_equal(seen.device_cnt, 3);
	assert_int_equal(seen.fed[0] | seen.fed[2], 0);
	gpuwatch_stop(watch);
}

static void without_a_driver_the_devices_come_from_the_folder(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_nothing);
	struct sidecar side;

	feed("7-7", 0.875, "");
	feed("8-8", 0.5, "");
	await_feed(watch, 1, true);
	side = take(watch, 71, 1);
	assert_int_equal(side.gpus.cnt, 1);
	assert_int_equal(side.gpus.data[0].index, 1);
	assert_int_equal(side.gpus.data[0].flags, SIDECAR_GPU_BY_RANK);
	assert_int_equal(side.gpu_samples.cnt, 1);
	sidecar_done(&side);
	gpuwatch_stop(watch);
}

static void a_wish_ends_with_the_window(void **state)
{
	struct gpuwatch *watch = start_shared(*state, open_fake);

	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	gpuwatch_set_window(watch, false);
	while (gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	gpuwatch_stop(watch);
}

/* CUDA takes seconds to start, so an order requests samples at once, and for a limited time. */
static void a_window_that_is_ordered_is_prepared(void **state)
{
	struct gpuwatch *watch = gpuwatch_start(
		&(struct gpuwatch_setup){ .open = open_fake,
					  .slow_ms = 1,
					  .fast_ms = 1,
					  .feed = { .dir = *state, .shared = true } });

	assert_non_null(watch);
	assert_false(gpushare_is_wanted(&share, clock_wall_ns()));
	gpuwatch_expect(watch, 3600 * NSEC_PER_SEC);
	while (!gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	feed("1-1", 0.875, "");
	await_feed(watch, 1, true);
	gpuwatch_expect(watch, 0);
	while (gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	gpuwatch_expect(watch, 1); /* the window does not open */
	(void)usleep(1000);
	while (gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	gpuwatch_expect(watch, 3600 * NSEC_PER_SEC);
	gpuwatch_set_window(watch, true);
	while (!gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	gpuwatch_set_window(watch, false);
	while (gpushare_is_wanted(&share, clock_wall_ns()))
		(void)usleep(1000);
	gpuwatch_stop(watch);
	gpuwatch_expect(NULL, 1);
}

/* --- the agent's own samplers; here scripts --- */

static void play_sampler(struct gpufeed *feed, const char *root, const char *script)
{
	write_file(root, "sampler", script);
	assert_int_equal(gpufeed_begin(feed), 0);
	gpufeed_end(feed);
	while (feed->pid > 0) {
		gpufeed_mind(feed);
		(void)usleep(1000);
	}
}

static void init_feed(const char *root, struct gpufeed *ret)
{
	static char program[128], dir[128];

	(void)snprintf(program, sizeof(program), "%s/sampler", root);
	(void)snprintf(dir, sizeof(dir), "%s/gpus", root);
	write_file(root, "sampler", "");
	assert_int_equal(chmod(program, 0700), 0);
	gpufeed_init(&(struct gpufeed_setup){ .program = program, .dir = dir }, ret);
}

static void a_sampler_that_was_reaped_elsewhere_does_not_prevent_the_next(void **state)
{
	struct gpufeed feed;

	init_feed(*state, &feed);
	write_file(*state, "sampler", "#!/bin/sh\nexit 0\n");
	assert_int_equal(gpufeed_begin(&feed), 0);
	gpufeed_end(&feed);
	assert_int_equal(waitpid(feed.pid, NULL, 0), feed.pid);
	gpufeed_mind(&feed);
	assert_int_equal(feed.pid, 0);
	assert_int_equal(feed.crashed, 1); /* its status is unknown */
	play_sampler(&feed, *state, "#!/bin/sh\nexit 0\n");
	assert_int_equal(feed.started, 2);
	assert_int_equal(feed.crashed, 1);
}

static void after_one_that_could_not_be_killed_there_is_no_other(void **state)
{
	struct gpufeed feed;

	init_feed(*state, &feed);
	play_sampler(&feed, *state, "#!/bin/sh\nexit 12\n");
	assert_int_equal(feed.hung, 1);
	play_sampler(&feed, *state, "#!/bin/sh\nexit 13\n");
	assert_int_equal(feed.hung, 2);
	assert_int_equal(gpufeed_begin(&feed), -ENODEV);
	assert_int_equal(feed.started, 2);
}

#define SHARED(name) cmocka_unit_test_setup_teardown(name, reset_share, end_share)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_that_cost_much_are_rare_between_windows),
		cmocka_unit_test_setup(a_worker_gets_the_samples_of_the_gpu_it_uses, reset),
		cmocka_unit_test_setup(a_worker_that_is_not_seen_gets_that_of_its_local_rank,
				       reset),
		cmocka_unit_test_setup(fast_samples_are_taken_in_windows_only, reset),
		cmocka_unit_test_setup(samples_before_the_window_are_left_out, reset),
		cmocka_unit_test_setup(faults_are_handed_over_once_in_their_order, reset),
		cmocka_unit_test_setup(a_host_without_gpus_says_why, reset),
		cmocka_unit_test_setup(a_driver_that_hangs_delays_no_caller, reset),
		cmocka_unit_test_setup_teardown(
			after_one_that_could_not_be_killed_there_is_no_other, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(
			a_sampler_that_was_reaped_elsewhere_does_not_prevent_the_next, make_root,
			remove_root),
		SHARED(samples_at_khz_take_the_place_of_slower_ones),
		SHARED(slower_samples_replace_a_sampler_without_samples),
		SHARED(a_piece_without_samples_changes_nothing),
		SHARED(a_sampler_that_falls_silent_is_noticed),
		SHARED(overwritten_samples_are_reported),
		SHARED(devices_of_others_are_left_out),
		SHARED(without_a_driver_the_devices_come_from_the_folder),
		SHARED(the_latest_of_fine_samples_is_a_mean),
		SHARED(a_wish_ends_with_the_window),
		SHARED(a_window_that_is_ordered_is_prepared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
