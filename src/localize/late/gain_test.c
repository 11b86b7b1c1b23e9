/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/gain.h"

#include "base/test_random.h"
#include "localize/peers.h"
#include "localize/test_job.h"

#include <math.h>
#include <string.h>

#define WORKERS 8
#define ITERATIONS 6
#define MUCH 1e12 /* ns: what is to be limited */

static const struct test_place batch = { NULL, KIND_PYTHON, "socket.py: recv_into", CLASS_HOST };
static const struct test_place message = { NULL, KIND_KERNEL, "ncclDevKernel_SendRecv",
					   CLASS_COMM };

/* What is left of MUCH of two accusations, in ms an iteration. */
static void limit(const struct test_job *test, const struct accusation two[static 2],
		  double ret_ms[static 2])
{
	struct accuse_options options = { .min_gain_frac = 0 };
	struct arena arena = { 0 };
	struct blame blame;
	struct job job;
	accusations list = { 0 };

	assert_int_equal(job_init(&job, test->fps, test->cnt), 0);
	assert_int_equal(peers_find(&job), 0);
	assert_int_equal(blame_find(&job, &arena, &blame), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(vec_push(&list, two[i]), 0);
		list.data[i].gain_ns = MUCH;
	}
	assert_int_equal(gain_find_hidden(&job, &blame, &options, &list), 0);
	for (size_t i = 0; i < 2; i++)
		ret_ms[i] = (MUCH - list.data[i].hidden_ns) / 1e6;
	vec_done(&list);
	blame_done(&blame);
	job_done(&job);
	arena_done(&arena);
}

/* One group: each worker is late by ms[iteration][worker]. */
static void play(struct test_job *job, double ms[ITERATIONS][WORKERS])
{
	test_job_init(job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(job);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(job, w, &test_mm, 75 + ms[i][w]);
		test_meet(job, 0, 0, WORKERS, 5);
	}
	test_finish(job);
}

/* The job's length with and without what the accused are late by, per iteration. */
static double replayed_ms(double ms[ITERATIONS][WORKERS], const struct accusation *a)
{
	double sum = 0;

	for (size_t i = 0; i < ITERATIONS; i++) {
		double with = 0, without = 0;

		for (uint32_t w = 0; w < WORKERS; w++) {
			with = fmax(with, ms[i][w]);
			without = fmax(without, accusation_has(a, w) ? 0 : ms[i][w]);
		}
		sum += with - without;
	}
	return sum / ITERATIONS;
}

static void repair_gives_back_what_a_replay_without_the_fault_does(void **state)
{
	static const uint32_t one[] = { 1 }, two[] = { 4, 5 };
	const struct accusation both[] = { { .workers = one, .worker_cnt = 1 },
					   { .workers = two, .worker_cnt = 2 } };
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 50; round++) {
		double ms[ITERATIONS][WORKERS], left[2];
		struct test_job job;

		for (size_t i = 0; i < ITERATIONS; i++) {
			for (size_t w = 0; w < WORKERS; w++)
				ms[i][w] = (double)(test_random(&random) %
						    (w == 1 || w == 4 || w == 5 ? 40 : 10));
		}
		play(&job, ms);
		limit(&job, both, left);
		assert_float_equal(left[0], replayed_ms(ms, &both[0]), 1e-3);
		assert_float_equal(left[1], replayed_ms(ms, &both[1]), 1e-3);
		test_job_done(&job);
	}
}

/*
 * Worker 1 is late for both faults, so its lateness does not measure the second; that of
 * workers 0 and 2 does.
 */
static void lateness_for_two_reasons_measures_one_of_them(void **state)
{
	static const uint32_t one[] = { 1 }, three[] = { 0, 1, 2 };
	const struct accusation both[] = { { .workers = one, .worker_cnt = 1 },
					   { .workers = three, .worker_cnt = 3 } };
	double ms[ITERATIONS][WORKERS] = { { 0 } }, left[2];
	struct test_job job;

	(void)state;
	for (size_t i = 0; i < ITERATIONS; i++) {
		ms[i][0] = ms[i][2] = 4;
		ms[i][1] = 24;
	}
	play(&job, ms);
	limit(&job, both, left);
	assert_float_equal(left[0], 20, 1e-3);
	assert_float_equal(left[1], 4, 1e-3);
	test_job_done(&job);
}

/* Two groups meet. All of the second are accused, so its lateness has no reference there. */
static void where_all_are_accused_only_the_iteration_limits_the_gain(void **state)
{
	static const uint32_t some[] = { 1, 4, 5, 6, 7 }, one[] = { 1 };
	const struct accusation both[] = { { .workers = some, .worker_cnt = 5 },
					   { .workers = one, .worker_cnt = 1 } };
	struct test_job job;
	double left[2];

	(void)state;
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(&job, w, &test_mm, w == 1 ? 80 : 75);
		test_meet(&job, 0, 0, 4, 5);
		test_meet(&job, 1, 4, 4, 5);
	}
	test_finish(&job);
	limit(&job, both, left);
	assert_float_equal(left[0], 82.5, 1e-3);
	assert_float_equal(left[1], 5, 1e-3);
	test_job_done(&job);
}

/* Half of the others wait 6 ms, half of them 2 ms: even of workers that take turns. */
static void no_gain_is_more_than_others_wait(void **state)
{
	static const uint32_t one[] = { 1 }, two[] = { 1, 2 };
	const struct accusation both[] = {
		{ .workers = one, .worker_cnt = 1, .class = CLASS_COMM },
		{ .workers = two, .worker_cnt = 2, .rotates = true },
	};
	double ms[ITERATIONS][WORKERS] = { { 0 } }, left[2];
	struct test_job job;

	(void)state;
	for (size_t i = 0; i < ITERATIONS; i++) {
		ms[i][1 + i % 2] = 12;
		ms[i][3] = 2;
	}
	play(&job, ms);
	limit(&job, both, left);
	assert_float_equal(left[0], 6, 1e-3);
	assert_float_equal(left[1], 12, 1e-3);
	test_job_done(&job);
}

/* Ranks 0-3 load 16 ms longer, of which the pauses of a pipeline take up 12. */
static void a_report_counts_what_pauses_take_up_as_no_gain(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			test_work(&job, w, &batch, w < 4 ? 17 : 1);
			test_work(&job, w, &message, w < 4 ? 1 : 13);
			test_work(&job, w, &test_mm, 75 + (double)((w + i) % 3) / 5);
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	test_assert_ranks(&report.findings[0], "0-3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 4, 0.5);
	report_done(&report);
	test_job_done(&job);
}

/*
 * A pipeline of which rank 3's device takes 30 ms longer. Ranks with the same work wait for it in messages,
 * and meet it in a collective only 1 ms later than otherwise.
 */
static void who_waits_in_messages_waits_for_a_slow_device(void **state)
{
	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		struct test_job job;
		struct report report;

		test_job_init(&job, WORKERS, 0, 0);
		for (size_t i = 0; i < ITERATIONS; i++) {
			test_iterate(&job);
			for (size_t w = 0; w < WORKERS; w++) {
				for (int k = 0; k < 10; k++)
					test_work(&job, w, &message,
						  w == 3 ? 0.1 : 3 - (waits != 0 ? 0 : 2.9));
				test_work(&job, w, &test_mm, w == 3 ? 105 : 75);
				if (waits == 0 && w != 3)
					test_work(&job, w, &batch, 29);
			}
			test_meet(&job, 0, 0, WORKERS, 5);
		}
		test_finish(&job);
		report = test_localize(&job, NULL);
		assert_int_equal(test_find(&report, "gpu-slow") != NULL, waits);
		if (waits != 0) {
			test_assert_ranks(&report.findings[0], "3");
			assert_true(report.findings[0].gain_ms_per_iteration > 25);
		}
		report_done(&report);
		test_job_done(&job);
	}
}

/* As late as each other, two faults hide each other: none is left out, none is unsure. */
static void faults_that_hide_each_other_are_both_named(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			test_work(&job, w, &batch, w < 2 ? 25 : 1);
			test_work(&job, w, &test_mm, w == 7 ? 99 : 75);
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "slow-data-loading"), "0-1");
	test_assert_ranks(test_find(&report, "gpu-slow"), "7");
	for (size_t i = 0; i < 2; i++)
		assert_float_equal(report.findings[i].gain_pct, 1, 0.01);
	report_done(&report);
	test_job_done(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repair_gives_back_what_a_replay_without_the_fault_does),
		cmocka_unit_test(lateness_for_two_reasons_measures_one_of_them),
		cmocka_unit_test(where_all_are_accused_only_the_iteration_limits_the_gain),
		cmocka_unit_test(no_gain_is_more_than_others_wait),
		cmocka_unit_test(a_report_counts_what_pauses_take_up_as_no_gain),
		cmocka_unit_test(who_waits_in_messages_waits_for_a_slow_device),
		cmocka_unit_test(faults_that_hide_each_other_are_both_named),
	};

	return cmocka_run_group_tests_name("gain", tests, NULL, NULL);
}
