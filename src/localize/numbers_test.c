/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of findings that agree with each other, and with what they are said of. */
#include "localize/test_fixture.h"

#include <math.h>
#include <string.h>

#define WORKERS 8

static bool evidence_has(const struct finding *finding, const char *words)
{
	for (size_t i = 0; i < finding->evidence_cnt; i++) {
		if (strstr(finding->evidence[i], words) != NULL)
			return true;
	}
	return false;
}

/* A transfer that fills its link, or waits half of the time for one that does. */
static void transfer(size_t w, const char *name, double beta, double rate, double busy)
{
	uint32_t frame = test_frame(&job, w, FRAME_NONE, KIND_KERNEL, name);
	struct fp_function *f = test_function(&job, w, frame, CLASS_COMM, beta);

	test_utilize(f, RESOURCE_NIC_TX, rate * busy, rate * sqrt(busy * (1 - busy)) + 0.02);
}

/* Rank 5 has the slow link of the ring of odd ranks, and spends less time in it than others. */
static void play_slow_link(void)
{
	test_job_init(&job, WORKERS, 10000, 10);
	for (size_t w = 0; w < WORKERS; w++) {
		double rate = w == 5 ? 0.2 : 0.4, busy = w % 2 == 0 || w == 5 ? 1 : 0.5;
		double beta = w == 5 ? 0.1 : 0.12;
		struct test_worker *worker = &job.workers[w];

		(void)test_function(&job, w, test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "GEMM"),
				    CLASS_COMPUTE, 0.5);
		transfer(w, "AllGather", beta, rate, busy);
		transfer(w, "ReduceScatter", beta, rate, busy);
		assert_int_equal(
			vec_push(&worker->collectives, (struct fp_collective){ .group = 1,
									       .group_known = true,
									       .dur_ns = 100000000,
									       .bytes = -1 }),
			0);
		worker->fp.collectives = worker->collectives.data;
		worker->fp.collective_cnt = worker->collectives.cnt;
	}
}

static void a_share_of_the_window_is_a_time(void **state)
{
	const struct finding *finding;

	(void)state;
	play_slow_link();
	report = test_localize(&job, NULL);
	finding = test_find(&report, "slow-link");
	assert_non_null(finding);
	assert_float_equal(finding->beta.value, 0.1, 1e-6);
	assert_float_equal(finding->time_ms_per_iteration, 100, 1e-3);
}

static void a_gain_beyond_the_time_of_its_function_is_explained(void **state)
{
	const struct finding *finding;

	(void)state;
	play_slow_link();
	for (size_t w = 0; w < WORKERS; w++)
		transfer(w, "AllReduce", 0.12, w == 5 ? 0.1 : 0.4, w % 2 == 0 || w == 5 ? 1 : 0.25);
	report = test_localize(&job, NULL);
	finding = test_find(&report, "slow-link");
	assert_non_null(finding);
	assert_true(finding->gain_ms_per_iteration > finding->time_ms_per_iteration);
	assert_true(evidence_has(finding, "of the gain are in other functions"));
}

/* Each of three ranks pauses in two of six iterations, for 12 ms. */
static void what_is_lost_by_turns_is_no_more_than_the_time_there(void **state)
{
	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (size_t i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			if (w == 1 + i % 3)
				test_work(&job, w, &test_crop, 12);
			test_work(&job, w, &test_mm, 75);
		}
		test_meet(&job, 0, 0, 4, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_non_null(strstr(report.findings[0].title, "taking turns"));
	assert_float_equal(report.findings[0].delta_ms_per_iteration, 12, 0.1);
	assert_float_equal(report.findings[0].time_ms_per_iteration, 12, 0.1);
}

static void the_only_rank_is_named(void **state)
{
	(void)state;
	test_job_init(&job, 1, 0, 0);
	for (size_t i = 0; i < 6; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_crop, 20);
		test_work(&job, 0, &test_mm, 80);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_true(report.findings[0].all_workers);
	if (strncmp(report.findings[0].title, "rank 0: ", 8) != 0)
		assert_string_equal(report.findings[0].title, "rank 0: ...");
}

static void iterations_are_whole(void **state)
{
	(void)state;
	test_job_init(&job, 2, 100, 3);
	job.workers[1].fp.iteration_cnt = 2;
	report = test_localize(&job, NULL);
	assert_float_equal(report.iterations, 2, 0);
}

static void one_iteration_is_no_plural(void **state)
{
	(void)state;
	test_job_init(&job, 4, 0, 0);
	test_iterate(&job);
	for (size_t w = 0; w < 4; w++)
		test_work(&job, w, &test_mm, w == 1 ? 120 : 75);
	test_meet(&job, 0, 0, 4, 5);
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_true(evidence_has(&report.findings[0],
				 "arrived last at 1 of 1 collective, in 1 of 1 iteration"));
	assert_false(evidence_has(&report.findings[0], "collectives"));
	assert_false(evidence_has(&report.findings[0], "iterations"));
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_share_of_the_window_is_a_time),
		TEST(a_gain_beyond_the_time_of_its_function_is_explained),
		TEST(what_is_lost_by_turns_is_no_more_than_the_time_there),
		TEST(the_only_rank_is_named),
		TEST(iterations_are_whole),
		TEST(one_iteration_is_no_plural),
	};

	return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
