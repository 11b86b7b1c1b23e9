/* SPDX-License-Identifier: Apache-2.0 */
#include "center/anysize.h"

#include "localize/test_job.h"

#include <errno.h>
#include <string.h>

#define WORKERS 24
#define CULPRIT 17
#define ITERATIONS 6

static struct test_job job;
static struct localize_options options;
static struct report report;

static int setup(void **state)
{
	(void)state;
	options = localize_defaults();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	report_done(&report);
	test_job_done(&job);
	return 0;
}

/* All workers compute and meet; the culprit spends ms more in a place. */
static void play(const struct test_place *place, double ms)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			test_work(&job, w, &test_mm, 80 + 0.1 * (double)((w * 7 + (size_t)i) % 5));
			test_work(&job, w, place, w == CULPRIT ? 1 + ms : 1);
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
}

static void localize_up_to(size_t blame_max)
{
	struct err err = { "" };

	report_done(&report);
	if (anysize_localize(job.fps, job.cnt, &options, blame_max, &report, &err) < 0)
		fail_msg("anysize_localize: %s", err.text);
}

static bool has_note(const char *text)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strstr(report.notes[i], text) != NULL)
			return true;
	}
	return false;
}

static void assert_both_ways_accuse_the_culprit(const char *place)
{
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_int_equal(report.verdict, VERDICT_ABNORMAL);
		test_assert_ranks(&report.findings[0], "17");
		assert_non_null(strstr(report.findings[0].title, place));
		assert_int_equal(report.workers_analyzed, WORKERS);
		assert_int_equal(has_note("localized by columns"), blame_max < WORKERS);
		assert_int_equal(report.wait_cnt > 0, blame_max >= WORKERS);
	}
}

static void both_ways_accuse_a_slow_device(void **state)
{
	(void)state;
	play(&test_mm, 100);
	assert_both_ways_accuse_the_culprit("mm");
}

static void both_ways_accuse_a_slow_function_of_the_host(void **state)
{
	(void)state;
	play(&test_crop, 30);
	assert_both_ways_accuse_the_culprit("crop");
}

static void both_ways_call_a_healthy_job_healthy(void **state)
{
	(void)state;
	play(&test_mm, 0);
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_int_equal(report.verdict, VERDICT_HEALTHY);
	}
}

static void neither_way_calls_a_job_healthy_that_lost_much(void **state)
{
	(void)state;
	play(&test_mm, 0);
	job.workers[3].fp.drops.flight_lost = 1000000;
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
		assert_non_null(strstr(report.reason, "rank 3 lost 100 % of what"));
	}
}

/* Only where the workers do not know how many they are. */
static void both_ways_count_inputs_that_failed_to_load(void **state)
{
	static const struct report_failure failures[] = { { "a.json", "empty" },
							  { "b.json", "empty" } };

	(void)state;
	play(&test_mm, 0);
	options.failures = failures;
	options.failure_cnt = ARRAY_SIZE(failures);
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_int_equal(report.failure_cnt, 2);
		assert_int_equal(report.workers_expected, WORKERS);
	}
	for (size_t w = 0; w < WORKERS; w++)
		job.workers[w].fp.world_size = -1;
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_int_equal(report.workers_expected, WORKERS + 2);
		assert_int_equal(report.missing_cnt, 2);
	}
}

static void both_ways_take_the_first_job_id_that_is_not_empty(void **state)
{
	(void)state;
	play(&test_mm, 0);
	job.workers[2].fp.job_id = "two";
	job.workers[5].fp.job_id = "five";
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_string_equal(report.job_id, "two");
	}
}

static void both_ways_report_lost_records_and_absent_samples(void **state)
{
	static struct fp_absence absence = { 1, "no permission" };

	(void)state;
	play(&test_mm, 0);
	job.workers[3].fp.has_device = true;
	job.workers[3].fp.absences = &absence;
	job.workers[3].fp.absence_cnt = 1;
	job.workers[3].fp.drops.flight_lost = job.workers[8].fp.drops.flight_lost = 2;
	job.workers[8].fp.collective_dropped = 7;
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		localize_up_to(blame_max);
		assert_true(has_note("4 records lost: a buffer of the worker was full"));
		assert_true(has_note("collectives left out for the limit per worker: 7"));
		assert_true(report.absence_cnt > 1);
		assert_string_equal(report.absences[report.absence_cnt - 1].source,
				    "counters of GPU 1");
		assert_string_equal(report.absences[report.absence_cnt - 1].why, "no permission");
	}
}

static void both_ways_refuse_two_workers_of_one_rank(void **state)
{
	(void)state;
	play(&test_mm, 0);
	job.workers[3].fp.rank = 5;
	for (size_t blame_max = WORKERS - 1; blame_max <= WORKERS; blame_max++) {
		struct err err = { "" };

		assert_int_equal(
			anysize_localize(job.fps, job.cnt, &options, blame_max, &report, &err),
			-EINVAL);
		assert_non_null(strstr(err.text, "rank 5: expected one worker, found two"));
	}
}

static void no_worker_at_all_is_inconclusive(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_int_equal(anysize_localize(NULL, 0, &options, 0, &report, &err), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(both_ways_accuse_a_slow_device),
		TEST(both_ways_accuse_a_slow_function_of_the_host),
		TEST(both_ways_call_a_healthy_job_healthy),
		TEST(neither_way_calls_a_job_healthy_that_lost_much),
		TEST(both_ways_count_inputs_that_failed_to_load),
		TEST(both_ways_take_the_first_job_id_that_is_not_empty),
		TEST(both_ways_report_lost_records_and_absent_samples),
		TEST(both_ways_refuse_two_workers_of_one_rank),
		TEST(no_worker_at_all_is_inconclusive),
#undef TEST
	};

	return cmocka_run_group_tests_name("anysize", tests, NULL, NULL);
}
