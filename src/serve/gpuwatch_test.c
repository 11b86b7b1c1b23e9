/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gpuwatch.h"

#include "base/clock.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

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
	if (idx == 1 && fake.faults-- > 0)
		gpuhw_set(ret, GPU_METRIC_FAULT, 70 + fake.faults);
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

/* However long it takes. */
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
	assert_string_equal(side.gpus.data[0].why, "nobody looked");
	sidecar_done(&side);
	gpuwatch_stop(NULL);
}

static void a_driver_that_hangs_holds_nobody_up(void **state _unused_)
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
	fake.hang = false; /* at last it answers: the thread ends and frees what is left */
	assert_int_equal(sem_post(&fake.go_on), 0);
	wait_for(&fake.closed, 1);
	(void)usleep(10000); /* for a leak checker to see that it is freed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_worker_gets_the_samples_of_the_gpu_it_uses, reset),
		cmocka_unit_test_setup(a_worker_that_is_not_seen_gets_that_of_its_local_rank,
				       reset),
		cmocka_unit_test_setup(fast_samples_are_taken_in_windows_only, reset),
		cmocka_unit_test_setup(samples_before_the_window_are_left_out, reset),
		cmocka_unit_test_setup(faults_are_handed_over_once_in_their_order, reset),
		cmocka_unit_test_setup(a_host_without_gpus_says_why, reset),
		cmocka_unit_test_setup(a_driver_that_hangs_holds_nobody_up, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
