/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that is late where the window ends, through localize(). */
#include "localize/late/tail.h"

#include "localize/test_fixture.h"

#include <string.h>

#define ITERATIONS 5

static const struct test_place log_metrics = { NULL, KIND_PYTHON, "train.py(8): log_metrics",
					       CLASS_HOST };

/*
 * Four ranks; each does 100 ms of work before the ranks meet. After the last meeting rank 2 is at
 * the place for ms, the others for others_ms.
 */
static void play(const struct test_place *place, double ms, double others_ms)
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 98);
		test_meet(&job, 0, 0, 4, 2);
	}
	for (size_t w = 0; w < 4; w++)
		test_work(&job, w, place, w == 2 ? ms : others_ms);
	test_finish(&job);
	report = test_localize(&job, NULL);
}

static void a_rank_that_is_late_at_the_end_is_not_healthy(void **state)
{
	(void)state;
	play(&log_metrics, 100, 1);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.finding_cnt, 0);
	assert_true(report.has_suspect);
	assert_int_equal(report.suspect, 2);
	assert_non_null(strstr(report.reason, "rank 2 spends 99.0 ms more than its peers"));
	assert_non_null(strstr(report.reason, "in train.py(8): log_metrics"));
}

static void what_all_do_at_the_end_makes_no_rank_wait(void **state)
{
	(void)state;
	play(&log_metrics, 100, 100);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
}

static void less_than_chance_is_healthy(void **state)
{
	(void)state;
	play(&log_metrics, 40, 1);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
}

/* The device has work meanwhile: no rank waits for its host. */
static void work_of_the_device_at_the_end_is_not_the_hosts(void **state)
{
	(void)state;
	play(&test_mm, 100, 1);
	assert_null(strstr(report.reason, "after its last collective"));
}

/* In the middle of the window the next collective shows that the others wait. */
static void before_the_last_collective_blame_knows(void **state)
{
	(void)state;
	test_play_late(&job, &log_metrics, 2, 100);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	test_assert_ranks(&report.findings[0], "2");
}

/* Work of the device that makes the same iterations longer on one rank than on those that it meets. */
static void a_rank_whose_iterations_take_longer_is_named(void **state)
{
	(void)state;
	play(&test_mm, 100, 1);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.suspect, 2);
	assert_non_null(strstr(report.reason, "iterations of rank 2 take 19.8 ms longer"));
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rank_that_is_late_at_the_end_is_not_healthy),
		TEST(what_all_do_at_the_end_makes_no_rank_wait),
		TEST(less_than_chance_is_healthy),
		TEST(work_of_the_device_at_the_end_is_not_the_hosts),
		TEST(before_the_last_collective_blame_knows),
		TEST(a_rank_whose_iterations_take_longer_is_named),
	};

	return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
