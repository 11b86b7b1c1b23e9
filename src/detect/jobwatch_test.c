/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/jobwatch.h"

#include "detect/test_detect.h"

#define S NSEC_PER_SEC

static struct jobwatch watch_default(void)
{
	struct jobwatch watch;

	jobwatch_init(&watch, &jobwatch_default_config);
	return watch;
}

static void set(enum detector_state *states, size_t cnt, enum detector_state state)
{
	for (size_t i = 0; i < cnt; i++)
		states[i] = state;
}

static void jobwatch_decides_once_when_workers_get_slow_one_by_one(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[8];
	unsigned decisions = 0;

	(void)state;
	set(states, 8, DETECTOR_WATCHING);
	for (size_t i = 0; i < 8; i++) {
		states[i] = DETECTOR_SLOW;
		decisions += jobwatch_update(&watch, states, 8, (int64_t)i) == JOB_SLOW;
		assert_int_equal(decisions, i >= 1); /* a quarter of eight is two */
	}
	assert_int_equal(jobwatch_update(&watch, states, 8, 600 * S), JOB_NOTHING);
}

static void jobwatch_decides_again_after_recovery_and_the_gap(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };

	(void)state;
	assert_int_equal(jobwatch_update(&watch, states, 2, 0), JOB_SLOW);
	set(states, 2, DETECTOR_WATCHING);
	assert_int_equal(jobwatch_update(&watch, states, 2, 10 * S), JOB_NOTHING);
	set(states, 2, DETECTOR_SLOW);
	assert_int_equal(jobwatch_update(&watch, states, 2, 20 * S), JOB_NOTHING);
	assert_int_equal(jobwatch_update(&watch, states, 2, 60 * S), JOB_SLOW); /* held back */
}

static void jobwatch_believes_one_slow_worker_after_a_while(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[16];

	(void)state;
	set(states, 16, DETECTOR_WATCHING);
	states[3] = DETECTOR_SLOW;
	assert_int_equal(jobwatch_update(&watch, states, 16, 0), JOB_NOTHING);
	assert_int_equal(jobwatch_update(&watch, states, 16, 29 * S), JOB_NOTHING);
	assert_int_equal(jobwatch_update(&watch, states, 16, 30 * S), JOB_SLOW);
}

static void jobwatch_distinguishes_blocked_from_slow(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };

	(void)state;
	assert_int_equal(jobwatch_update(&watch, states, 2, 0), JOB_SLOW);
	set(states, 2, DETECTOR_BLOCKED);
	assert_int_equal(jobwatch_update(&watch, states, 2, 20 * S), JOB_BLOCKED);
	set(states, 2, DETECTOR_SLOW);
	assert_int_equal(jobwatch_update(&watch, states, 2, 90 * S),
			 JOB_NOTHING); /* the same one */
}

static void jobwatch_has_nothing_to_say_without_workers(void **state)
{
	struct jobwatch watch = watch_default();

	(void)state;
	assert_int_equal(jobwatch_update(&watch, NULL, 0, 0), JOB_NOTHING);
}

int run_jobwatch_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobwatch_decides_once_when_workers_get_slow_one_by_one),
		cmocka_unit_test(jobwatch_decides_again_after_recovery_and_the_gap),
		cmocka_unit_test(jobwatch_believes_one_slow_worker_after_a_while),
		cmocka_unit_test(jobwatch_distinguishes_blocked_from_slow),
		cmocka_unit_test(jobwatch_has_nothing_to_say_without_workers),
	};

	return cmocka_run_group_tests_name("jobwatch", tests, NULL, NULL);
}
