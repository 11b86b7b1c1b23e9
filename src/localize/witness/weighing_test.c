/* SPDX-License-Identifier: Apache-2.0 */
/* What chance does to healthy jobs, and how little a fault may be that is none of it. */
#include "localize/witness/weighing.h"

#include "localize/test_fixture.h"

#include <string.h>

#define WORKERS 6
#define KERNELS 8

static const struct test_place read_file = { "forward", KIND_PYTHON, "data.py: read", CLASS_HOST };

/* Iterations of 100 ms; worker 2 reads a file for ms in some of them. */
static void play(size_t iterations, size_t first, size_t every, double ms)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < iterations; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(&job, w, &test_mm, 95);
		if (i % every == first)
			test_work(&job, 2, &read_file, ms);
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
}

static void one_short_pause_in_many_iterations_accuses_no_worker(void **state)
{
	(void)state;
	play(10, 4, 10, 40);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
}

static void one_pause_that_takes_much_of_the_window_is_a_finding(void **state)
{
	(void)state;
	play(10, 4, 10, 200);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "2");
}

static void a_little_now_and_then_may_be_chance(void **state)
{
	(void)state;
	play(6, 1, 3, 9);
	assert_int_equal(report.finding_cnt, 0);
}

static void a_little_in_each_iteration_is_a_finding(void **state)
{
	(void)state;
	play(6, 0, 1, 3);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "2");
}

/* One rank that crops for 10 ms of each iteration; spread_ms: how much that varies. */
static void play_alone(double spread_ms)
{
	test_job_init(&job, 1, 0, 0);
	for (size_t i = 0; i < 8; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_mm, 40);
		test_work(&job, 0, &test_crop, 10);
	}
	test_finish(&job);
	vec_foreach(f, &job.workers[0].functions)
		f->spread_ns = f->class == CLASS_HOST ? spread_ms * 1e6 : 0;
	report = test_localize(&job, NULL);
}

static bool may_be_chance(void)
{
	for (size_t i = 0; i < report.findings[0].evidence_cnt; i++) {
		if (strstr(report.findings[0].evidence[i], "lies in one iteration") != NULL)
			return true;
	}
	return false;
}

/* 80 ms in one of eight iterations deviate by 28 ms from their mean. */
static void what_a_rank_without_peers_did_once_is_weak_evidence(void **state)
{
	(void)state;
	play_alone(28);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_true(may_be_chance());
}

static void what_it_does_in_each_iteration_is_no_chance(void **state)
{
	(void)state;
	play_alone(10);
	assert_int_equal(report.finding_cnt, 1);
	assert_false(may_be_chance());
}

/* Two collectives an iteration, beside the work: a device that is late for one is late for both. */
static void play_chip(double slower)
{
	static const char *const names[KERNELS] = {
		"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
	};

	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t k = 0; k < KERNELS; k++) {
			const struct test_place kernel = { NULL, KIND_KERNEL, names[k],
							   CLASS_COMPUTE };

			for (size_t w = 0; w < WORKERS; w++)
				test_work(&job, w, &kernel, w == 4 ? 12 * slower : 12);
		}
		test_meet(&job, 0, 0, WORKERS, 4);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
}

static void devices_of_one_kind_differ_by_some_percent(void **state)
{
	(void)state;
	play_chip(1.025);
	assert_int_equal(report.finding_cnt, 0);
}

static void a_device_that_is_slower_than_that_is_a_finding(void **state)
{
	(void)state;
	play_chip(1.06);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "gpu-slow");
	test_assert_ranks(&report.findings[0], "4");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 5.76, 0.1);
}

/* Whether an accusation of so much of an iteration, without a place, stays. */
static bool stays(double gain_frac, bool rotates)
{
	const struct job all = { .iteration_ns = 100e6 };
	const struct blame blame = { .workers = NULL };
	const struct accuse_options options = { .min_gain_frac = 0.01 };
	accusations list = { 0 };
	uint32_t worker = 0;
	bool ret;

	assert_int_equal(vec_push(&list, ((struct accusation){ .witness = WITNESS_BLAME,
							       .class = CLASS_COMPUTE,
							       .spread = true,
							       .workers = &worker,
							       .worker_cnt = 1,
							       .rotates = rotates,
							       .gain_ns = gain_frac * 100e6 })),
			 0);
	weighing_drop_slight(&all, &blame, &options, &list);
	ret = list.cnt == 1;
	vec_done(&list);
	return ret;
}

static void what_rotates_without_a_place_is_jitter_up_to_three_percent(void **state)
{
	(void)state;
	assert_false(stays(0.026, true));
	assert_true(stays(0.031, true));
	assert_true(stays(0.026, false));
	assert_false(stays(0.019, false));
}

/* An accusation by blame of worker 0 beside the given one. Whether that stays. */
static bool stays_beside(enum witness witness, enum event_class class, size_t worker_cnt,
			 double gain_frac, bool host_of_all)
{
	static const uint32_t all[] = { 0, 1, 2, 3 };
	const struct job four = { .worker_cnt = 4, .iteration_ns = 100e6 };
	struct accusation late = { .witness = host_of_all ? WITNESS_EXPECTATION : WITNESS_BLAME,
				   .class = CLASS_HOST,
				   .workers = all,
				   .worker_cnt = host_of_all ? 4 : 1,
				   .gain_ns = 40e6 };
	struct accusation a = { .witness = witness,
				.class = class,
				.workers = all,
				.worker_cnt = worker_cnt,
				.gain_ns = gain_frac * 100e6 };
	accusations list = { 0 };
	bool ret;

	assert_int_equal(vec_push(&list, late), 0);
	assert_int_equal(vec_push(&list, a), 0);
	weighing_drop_minor(&four, &list);
	ret = list.cnt == 2;
	vec_done(&list);
	return ret;
}

static void communication_that_loses_little_beside_a_late_rank_is_no_finding(void **state)
{
	(void)state;
	assert_false(stays_beside(WITNESS_DIFFERENCE, CLASS_COMM, 2, 0.039, false));
	assert_true(stays_beside(WITNESS_DIFFERENCE, CLASS_COMM, 2, 0.041, false));
	assert_true(stays_beside(WITNESS_DIFFERENCE, CLASS_HOST, 2, 0.02, false));
	assert_true(stays_beside(WITNESS_BLAME, CLASS_COMM, 2, 0.02, false));
}

static void communication_of_all_is_design_beside_what_costs_more(void **state)
{
	(void)state;
	assert_false(stays_beside(WITNESS_EXPECTATION, CLASS_COMM, 4, 0.19, true));
	assert_true(stays_beside(WITNESS_EXPECTATION, CLASS_COMM, 4, 0.21, true));
	assert_true(stays_beside(WITNESS_EXPECTATION, CLASS_COMM, 2, 0.19, true));
}

/* All threads are as long in a function by which worker 2 is late now and then. */
static void what_all_threads_do_for_as_long_accuses_none(void **state)
{
	(void)state;
	for (int common = 0; common < 2; common++) {
		struct accusation a = { .witness = WITNESS_BLAME,
					.class = CLASS_HOST,
					.own_ns = 8e6 };
		const uint32_t worker = 2;
		struct job joined;
		accusations list = { 0 };

		test_job_init(&job, WORKERS, 1000, 10);
		for (size_t w = 0; w < WORKERS; w++)
			test_function(&job, w,
				      test_frame(&job, w, FRAME_NONE, KIND_OPERATOR, "aten::gelu"),
				      CLASS_HOST, 0.1)
				->thread_ns = w == 2 || common != 0 ? 100000000 : 20000000;
		assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
		a.workers = &worker;
		a.worker_cnt = 1;
		a.function = job_function_find(&joined, 0, CLASS_HOST);
		assert_int_not_equal(a.function, FRAME_NONE);
		assert_int_equal(vec_push(&list, a), 0);
		assert_int_equal(weighing_drop_common(&joined, &list), 0);
		assert_int_equal(list.cnt, 1 - common);
		vec_done(&list);
		job_done(&joined);
		test_job_done(&job);
	}
}

/* On a crowded host all are late, worker 2 not much more, but at a place of its own. */
static void who_is_late_at_its_own_place_need_not_stand_out(void **state)
{
	static const struct test_place noise = { "backward", KIND_PYTHON, "train.py: loss",
						 CLASS_HOST };

	(void)state;
	for (int own = 0; own < 2; own++) {
		test_job_init(&job, 2, 0, 0);
		for (size_t i = 0; i < 8; i++) {
			test_iterate(&job);
			for (size_t w = 0; w < 2; w++) {
				test_work(&job, w, &test_mm, 60);
				test_work(&job, w, &noise, i % 2 == w ? 34 : 2);
			}
			test_work(&job, 1, own != 0 ? &read_file : &noise, i % 2 != 0 ? 40 : 0.01);
			test_meet(&job, 0, 0, 2, 5);
		}
		test_finish(&job);
		report = test_localize(&job, NULL);
		if (own != 0) {
			assert_true(report.finding_cnt > 0);
			test_assert_ranks(&report.findings[0], "1");
			assert_string_equal(report.findings[0].name, "data.py: read");
		}
		(void)done(NULL);
	}
}

/* Four stages of one worker each, which only send messages; the last one has the loss. */
static void a_kernel_of_one_stage_is_no_slow_device(void **state)
{
	(void)state;
	test_job_init(&job, 4, 1000, 10);
	for (size_t w = 0; w < 4; w++) {
		uint32_t layer = test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "GEMM");
		uint32_t message =
			test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "ncclKernel_SendRecv");

		(void)test_function(&job, w, layer, CLASS_COMPUTE, 0.5);
		test_function(&job, w, message, CLASS_COMM, 0.2)->executions = 40;
		if (w == 3)
			(void)test_function(&job, w,
					    test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "loss"),
					    CLASS_COMPUTE, 0.05);
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_short_pause_in_many_iterations_accuses_no_worker),
		TEST(one_pause_that_takes_much_of_the_window_is_a_finding),
		TEST(a_little_now_and_then_may_be_chance),
		TEST(what_a_rank_without_peers_did_once_is_weak_evidence),
		TEST(what_it_does_in_each_iteration_is_no_chance),
		TEST(a_little_in_each_iteration_is_a_finding),
		TEST(devices_of_one_kind_differ_by_some_percent),
		TEST(a_device_that_is_slower_than_that_is_a_finding),
		cmocka_unit_test(what_rotates_without_a_place_is_jitter_up_to_three_percent),
		cmocka_unit_test(communication_that_loses_little_beside_a_late_rank_is_no_finding),
		cmocka_unit_test(communication_of_all_is_design_beside_what_costs_more),
		TEST(what_all_threads_do_for_as_long_accuses_none),
		TEST(who_is_late_at_its_own_place_need_not_stand_out),
		TEST(a_kernel_of_one_stage_is_no_slow_device),
	};

	return cmocka_run_group_tests_name("weighing", tests, NULL, NULL);
}
