/* SPDX-License-Identifier: Apache-2.0 */
/* What is slow on all workers, also where some of them hide it. */
#include "localize/test_fixture.h"

#include <string.h>

#define WORKERS 8
#define STAGE 4 /* workers of the first stage, on which it shows */
#define ITERATIONS 6

/*
 * All run the same 30 ms of Python. The first stage begins with them; the second has work
 * on the device meanwhile. One of the first is later than the others by extra_ms, by turns.
 */
static void play(double extra_ms)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			test_work(&job, w, &test_mm, w < STAGE ? 65 : 95);
			if (w < STAGE)
				test_work(&job, w, &test_crop,
					  30 + (i % STAGE == w ? extra_ms : 0));
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
}

/* The time of the second stage's threads in the function. */
static void hide(double ms)
{
	for (size_t w = STAGE; w < WORKERS; w++) {
		uint32_t frame = test_frame(&job, w, FRAME_NONE, test_crop.kind, test_crop.name);

		test_function(&job, w, frame, test_crop.class, 0)->thread_ns =
			(int64_t)(ms * ITERATIONS * 1e6);
	}
}

static void assert_all_ranks(void)
{
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-function-everywhere");
	test_assert_ranks(&report.findings[0], "0-7");
	assert_float_equal(report.findings[0].gain_pct, 29, 1);
	assert_float_equal(report.findings[0].beta.value, 0.3, 0.01);
}

static void time_hidden_in_the_second_stage_is_slow_on_all(void **state)
{
	(void)state;
	play(0);
	hide(29);
	report = test_localize(&job, NULL);
	assert_all_ranks();
}

/* All workers are slow, some by turns slower: the slowest have no fault of their own. */
static void the_last_worker_in_a_place_slow_on_all_is_not_accused(void **state)
{
	(void)state;
	play(4);
	hide(29);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "0-7");
}

/* The other stages do not run that code, and no worker is late. */
static void work_of_the_first_stage_alone_accuses_no_worker(void **state)
{
	(void)state;
	play(0);
	hide(5);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

static const struct test_place head = { NULL, KIND_KERNEL, "head", CLASS_COMPUTE };
static const struct test_place message = { NULL, KIND_KERNEL, "ncclDevKernel_SendRecv",
					   CLASS_COMM };

/* Two stages with different work, each with collectives of its own; the first slow_cnt crop. */
static void play_stages(size_t slow_cnt)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			test_work(&job, w, w < slow_cnt ? &test_crop : &message,
				  w < STAGE ? 15 : 10);
			test_work(&job, w, &test_mm, 75);
			if (w >= STAGE)
				test_work(&job, w, &head, 5);
		}
		test_meet(&job, 0, 0, STAGE, 5);
		test_meet(&job, 1, STAGE, STAGE, 5);
	}
	test_finish(&job);
}

/* No worker is late among the members of its collectives. */
static void a_place_slow_on_a_whole_stage_is_found(void **state)
{
	(void)state;
	play_stages(STAGE);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "cpu-bound-python");
	test_assert_ranks(&report.findings[0], "0-3");
}

/* Blame can compare it with the rest of the stage, and no worker waited. */
static void a_place_slow_on_part_of_a_stage_is_left_to_blame(void **state)
{
	(void)state;
	play_stages(STAGE - 1);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

/* One worker, 30 ms of a place in 100, in a live job whose iterations took baseline_ms before. */
static void play_live_in(const struct test_place *place, double baseline_ms, double current_ms,
			 const char *kind)
{
	struct localize_options options = localize_defaults();

	options.trigger = (struct report_trigger){ .present = true,
						   .kind = kind,
						   .baseline_iteration_ms = baseline_ms,
						   .current_iteration_ms = current_ms };
	test_job_init(&job, 1, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_mm, 70);
		test_work(&job, 0, place, 30);
	}
	test_finish(&job);
	report = test_localize(&job, &options);
}

static void play_live(double baseline_ms, double current_ms, const char *kind)
{
	static const struct test_place crop = { NULL, KIND_PYTHON, "augment.py(31): random_crop",
						CLASS_HOST };

	play_live_in(&crop, baseline_ms, current_ms, kind);
}

static bool has_note(const char *text)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strstr(report.notes[i], text) != NULL)
			return true;
	}
	return false;
}

static void what_costs_about_the_slowdown_explains_it(void **state)
{
	(void)state;
	play_live(65, 100, "slowdown");
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_false(has_note("slowdown"));
}

/* Noise makes a healthy job slower, and a library's function has much of each window. */
static void without_a_past_a_function_of_a_library_is_weak_evidence(void **state)
{
	static const struct test_place engine = {
		NULL, KIND_PYTHON, "torch/autograd/graph.py(966): _engine_run_backward", CLASS_HOST
	};

	(void)state;
	play_live_in(&engine, 65, 100, "slowdown");
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
	assert_int_equal(report.verdict, VERDICT_SLOW);
}

static void what_costs_much_less_than_the_slowdown_is_weak_evidence(void **state)
{
	(void)state;
	play_live(20, 100, "slowdown");
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
}

static void what_costs_much_more_than_the_slowdown_was_there_before(void **state)
{
	(void)state;
	play_live(90, 100, "slowdown");
	assert_int_equal(report.finding_cnt, 0);
	assert_true(has_note("all ranks: 29.0 ms per iteration (29.0 %) more in"));
	assert_true(has_note("does not explain the slowdown"));
}

/* The mean of 50 iterations at the trigger had few slow ones; the window has nothing else. */
static void what_costs_what_the_window_lost_explains_it(void **state)
{
	(void)state;
	play_live(70, 80, "slowdown");
	assert_int_equal(report.finding_cnt, 1);
}

static void a_job_as_fast_as_ever_has_no_finding_by_expectation(void **state)
{
	(void)state;
	play_live(100, 100, "checkup");
	assert_int_equal(report.finding_cnt, 0);
	assert_true(has_note("the job is as fast as ever"));
}

/* The pace is a mean of the time before; the window has the slow iterations. */
static void a_check_up_whose_own_iterations_are_slow_is_not_healthy(void **state)
{
	(void)state;
	play_live(45, 50, "checkup");
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "100.0 ms in this window and 45.0 ms at best"));
	assert_true(has_note("as fast as ever before this window"));
}

/* The detector has not said so, since iterations vary. */
static void what_explains_that_a_check_up_is_far_from_the_best_pace_is_a_finding(void **state)
{
	(void)state;
	play_live(75, 100, "checkup");
	assert_int_equal(report.finding_cnt, 1);
}

/* Slow from its first step, and no collective shows who waits: as fast as ever is no argument. */
static void what_one_rank_alone_spends_keeps_a_check_up_from_being_healthy(void **state)
{
	struct localize_options options = localize_defaults();

	(void)state;
	options.trigger = (struct report_trigger){ .present = true,
						   .kind = "checkup",
						   .baseline_iteration_ms = 24,
						   .current_iteration_ms = 24 };
	for (size_t alone = 0; alone < 2; alone++) {
		test_job_init(&job, 2, 0, 0);
		for (size_t i = 0; i < 10; i++) {
			test_iterate(&job);
			for (size_t w = 0; w < 2; w++) {
				test_work(&job, w, &test_mm, 12);
				test_work(&job, w, w == alone ? &test_crop : &test_nap, 12);
			}
		}
		test_finish(&job);
		report = test_localize(&job, &options);
		assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
		assert_non_null(strstr(report.reason, alone == 0 ? "rank 0 spends 12.0 ms"
								 : "rank 1 spends 12.0 ms"));
		report_done(&report);
		test_job_done(&job);
	}
}

static void without_a_known_pace_what_is_long_is_a_finding(void **state)
{
	(void)state;
	play_live(0, 100, "request");
	assert_int_equal(report.finding_cnt, 1);
}

/* 16 iterations of 20 ms on one worker; every nth waits for ms more, from the first or last on. */
static void play_waits(size_t every, size_t first, double ms)
{
	test_job_init(&job, 1, 0, 0);
	for (size_t i = 0; i < 16; i++) {
		test_iterate(&job);
		test_work(&job, 0, &test_mm, 20);
		if (i >= first && (i - first) % every == 0)
			test_work(&job, 0, &test_crop, ms);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
}

static void a_checkpoint_in_the_window_is_an_occasion(void **state)
{
	(void)state;
	play_waits(100, 7, 300);
	assert_int_equal(report.finding_cnt, 0);
}

/* The device had work in all iterations but one: the loader is slow in each, the wait for it rare. */
static void a_loader_that_the_device_hides_in_most_iterations_is_no_occasion(void **state)
{
	(void)state;
	play_waits(100, 7, 300);
	report_done(&report);
	job.workers[0].fp.use_cnt = 0;
	vec_foreach(f, &job.workers[0].functions) {
		if (f->class == CLASS_HOST)
			f->thread_ns = 16 * 250 * NSEC_PER_MSEC;
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt,
			 0); /* of a worker without a device nothing is hidden */
	report_done(&report);
	job.workers[0].fp.uses = (struct fp_iteration_use[16]){ 0 };
	job.workers[0].fp.use_cnt = 16;
	report = test_localize(&job, NULL);
	job.workers[0].fp.uses = NULL;
	job.workers[0].fp.use_cnt = 0;
	assert_int_equal(report.finding_cnt, 1);
}

/* A loader with two processes: of 180 ms for a batch every other iteration waits. */
static void a_wait_in_every_other_iteration_is_no_occasion(void **state)
{
	(void)state;
	play_waits(2, 0, 160);
	assert_int_equal(report.finding_cnt, 1);
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 79, 1);
	report_done(&report);
	test_job_done(&job);
	play_waits(2, 1, 160);
	assert_int_equal(report.finding_cnt, 1);
}

static void a_wait_at_equal_distances_is_no_occasion(void **state)
{
	(void)state;
	play_waits(6, 1, 160);
	assert_int_equal(report.finding_cnt, 1);
}

static const struct test_place silence = {
	NULL, KIND_OTHER, "idle after enumerate(DataLoader)#__next__, before aten::to", CLASS_IDLE
};

/* On all workers each so many iterations nothing is recorded for ms. */
static void play_silence(size_t iterations, size_t every, double ms)
{
	test_job_init(&job, STAGE, 0, 0);
	for (size_t i = 0; i < iterations; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < STAGE; w++) {
			test_work(&job, w, &test_mm, 95 - ms);
			if (i % every == 0)
				test_work(&job, w, &silence, ms);
		}
		test_meet(&job, 0, 0, STAGE, 5);
	}
	test_finish(&job);
}

static void silence_of_all_workers_in_each_iteration_is_found(void **state)
{
	(void)state;
	play_silence(ITERATIONS, 1, 20);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-function-everywhere");
	test_assert_ranks(&report.findings[0], "0-3");
	assert_float_equal(report.findings[0].gain_pct, 19, 0.1);
}

/* Rank 0 communicates a little less than expected at most, the others a little more. */
static void a_collective_long_on_nearly_all_is_long_on_all(void **state)
{
	(void)state;
	test_job_init(&job, 10, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 10; w++)
			test_work(&job, w, &test_mm, 60);
		test_meet(&job, 0, 0, 10, 40);
	}
	test_finish(&job);
	vec_foreach(f, &job.workers[0].functions) {
		if (f->class == CLASS_COMM)
			f->beta_frac = 0.29;
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-collective");
	test_assert_ranks(&report.findings[0], "0-9");
}

static void silence_of_few_iterations_is_not_known_to_come_again(void **state)
{
	(void)state;
	play_silence(2, 1, 20);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

static void silence_in_one_of_many_iterations_is_an_occasion(void **state)
{
	(void)state;
	play_silence(8, 8, 60);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

/* Not on a device: other threads may compute, of which nothing is recorded. */
static void silence_of_workers_without_devices_is_not_judged(void **state)
{
	(void)state;
	play_silence(ITERATIONS, 1, 20);
	for (size_t w = 0; w < STAGE; w++)
		job.workers[w].fp.has_device = false;
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

/* Four workers, of which one spends 30 of 100 ms in Python; they meet once in so many iterations. */
static void play_apart(size_t every)
{
	test_job_init(&job, STAGE, 0, 0);
	for (size_t i = 0; i < 2 * ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < STAGE; w++) {
			test_work(&job, w, &test_mm, 70);
			if (w == 3)
				test_work(&job, w, &test_crop, 30);
		}
		if (i % every == 0)
			test_meet(&job, 0, 0, STAGE, 5);
	}
	test_finish(&job);
}

/* Collectives show what came before them only; here most of the window lies behind the last one. */
static void what_is_long_between_rare_meetings_is_not_left_to_blame(void **state)
{
	(void)state;
	play_apart(2 * ITERATIONS);
	/* The others waited once, for what came before the window: that is no occasion of rank 3. */
	for (size_t w = 0; w < 3; w++)
		job.workers[w].fp.iterations[0].dur_ns += 1000000000;
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_true(report.findings[0].expectation_distance > 0.2);
	test_assert_ranks(&report.findings[0], "3");
	(void)done(NULL);

	play_apart(1); /* blame finds it */
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 30, 1);
	test_assert_ranks(&report.findings[0], "3");
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(time_hidden_in_the_second_stage_is_slow_on_all),
		TEST(the_last_worker_in_a_place_slow_on_all_is_not_accused),
		TEST(work_of_the_first_stage_alone_accuses_no_worker),
		TEST(a_place_slow_on_a_whole_stage_is_found),
		TEST(a_place_slow_on_part_of_a_stage_is_left_to_blame),
		TEST(what_costs_about_the_slowdown_explains_it),
		TEST(without_a_past_a_function_of_a_library_is_weak_evidence),
		TEST(what_costs_much_less_than_the_slowdown_is_weak_evidence),
		TEST(what_costs_much_more_than_the_slowdown_was_there_before),
		TEST(what_costs_what_the_window_lost_explains_it),
		TEST(a_job_as_fast_as_ever_has_no_finding_by_expectation),
		TEST(a_check_up_whose_own_iterations_are_slow_is_not_healthy),
		TEST(what_explains_that_a_check_up_is_far_from_the_best_pace_is_a_finding),
		TEST(what_one_rank_alone_spends_keeps_a_check_up_from_being_healthy),
		TEST(without_a_known_pace_what_is_long_is_a_finding),
		TEST(a_checkpoint_in_the_window_is_an_occasion),
		TEST(a_loader_that_the_device_hides_in_most_iterations_is_no_occasion),
		TEST(a_wait_in_every_other_iteration_is_no_occasion),
		TEST(a_wait_at_equal_distances_is_no_occasion),
		TEST(silence_of_all_workers_in_each_iteration_is_found),
		TEST(a_collective_long_on_nearly_all_is_long_on_all),
		TEST(silence_of_few_iterations_is_not_known_to_come_again),
		TEST(silence_in_one_of_many_iterations_is_an_occasion),
		TEST(silence_of_workers_without_devices_is_not_judged),
		TEST(what_is_long_between_rare_meetings_is_not_left_to_blame),
	};

	return cmocka_run_group_tests_name("by_expectation", tests, NULL, NULL);
}
