/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/detector.h"

#include "detect/test_detect.h"
#include "model/thresholds.h"

#define MS NSEC_PER_MSEC

/* A job that runs on its own clock. */
struct job {
	struct detector *det;
	int64_t now_ns;
	uint64_t step;
	unsigned events; /* all that happened since it was cleared */
};

static struct job job_new(void)
{
	struct job job = { .det = detector_new(&detector_default_config), .now_ns = 1000 * MS };

	assert_non_null(job.det);
	return job;
}

static void job_mark(struct job *job, enum mark mark, uint16_t detail, int64_t after_ns)
{
	struct ring_record record = { .kind = (uint16_t)mark, .detail = detail };

	job->now_ns += after_ns;
	record.time_ns = job->now_ns;
	record.extra = mark == MARK_OPTIMIZER ? ++job->step : 0;
	job->events |= detector_mark(job->det, &record);
}

/* One iteration: gap, loader, work, step. 100 ms at factor 1. */
static void job_iterate(struct job *job, double factor, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		job_mark(job, MARK_DATALOADER, 1, (int64_t)(10 * MS * factor));
		job_mark(job, MARK_DATALOADER_END, 1, (int64_t)(20 * MS * factor));
		job_mark(job, MARK_OPTIMIZER_BEGIN, 2, (int64_t)(60 * MS * factor));
		job_mark(job, MARK_OPTIMIZER, 2, (int64_t)(10 * MS * factor));
	}
}

static struct detector_view look(const struct job *job)
{
	struct detector_view view;

	detector_look(job->det, &view);
	return view;
}

static unsigned take_events(struct job *job)
{
	unsigned events = job->events;

	job->events = 0;
	return events;
}

static void detector_learns_watches_and_notices_a_slowdown(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 5);
	assert_int_equal(look(&job).state, DETECTOR_LEARNING);
	job_iterate(&job, 1, 95);
	assert_int_equal(look(&job).state, DETECTOR_WATCHING);
	assert_int_equal(look(&job).pace.baseline_ns, 100 * MS);
	assert_int_equal(look(&job).step_cnt, 1);
	assert_true(take_events(&job) & DETECTOR_LEARNED);
	job_iterate(&job, 1.3, 20);
	assert_true(take_events(&job) & DETECTOR_BECAME_SLOW);
	assert_int_equal(look(&job).state, DETECTOR_SLOW);
	assert_int_equal(look(&job).iteration_ns, 130 * MS);
	job_iterate(&job, 1, 60);
	assert_true(take_events(&job) & DETECTOR_CLEARED);
	detector_free(job.det);
}

static void detector_knows_the_step_of_a_slowdown_until_it_is_accepted(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 100);
	assert_false(detector_accept(job.det));
	assert_int_equal(look(&job).slow_since_step, 0);
	job_iterate(&job, 1.5, 2000);
	assert_int_equal(look(&job).state, DETECTOR_SLOW);
	assert_int_equal(look(&job).slow_since_step, 101);
	assert_true(detector_accept(job.det));
	assert_int_equal(look(&job).state, DETECTOR_WATCHING);
	assert_int_equal(look(&job).slow_since_step, 0);
	assert_int_equal(look(&job).pace.baseline_ns, 150 * MS);
	assert_int_equal(look(&job).learned_cnt, 1);
	detector_free(job.det);
}

static void detector_sees_what_is_slow_between_step_and_next_loader_call(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 100);
	for (unsigned i = 0; i < 20; i++) {
		job.now_ns += 50 * MS;
		job_iterate(&job, 1, 1);
	}
	assert_true(take_events(&job) & DETECTOR_BECAME_SLOW);
	detector_free(job.det);
}

static void detector_does_not_take_an_evaluation_for_a_slowdown(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 70);
	for (unsigned i = 0; i < 30; i++) {
		for (unsigned n = 0; n < 50; n++)
			job_mark(&job, MARK_DATALOADER, 3, 40 * MS);
		job_iterate(&job, 1, 25);
	}
	assert_false(job.events & (DETECTOR_BECAME_SLOW | DETECTOR_LOST));
	assert_int_equal(look(&job).skipped, 30 * 50);
	detector_free(job.det);
}

static void detector_keeps_its_baseline_over_a_long_evaluation(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 100);
	for (unsigned n = 0; n < 1000; n++)
		job_mark(&job, MARK_DATALOADER, 3, 4 * MS);
	assert_false(take_events(&job) & DETECTOR_LOST);
	assert_int_equal(look(&job).state, DETECTOR_WATCHING);
	job_iterate(&job, 1.5, 40);
	assert_true(take_events(&job) & DETECTOR_BECAME_SLOW);
	assert_int_equal(look(&job).pace.baseline_ns, 100 * MS);
	detector_free(job.det);
}

static void detector_starts_anew_with_another_loop(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 100);
	for (unsigned i = 0; i < 200; i++) { /* a second stage: accumulates, takes twice as long */
		job_mark(&job, MARK_DATALOADER, 1, 100 * MS);
		job_mark(&job, MARK_DATALOADER, 1, 50 * MS);
		job_mark(&job, MARK_OPTIMIZER, 2, 50 * MS);
	}
	assert_false(take_events(&job) & DETECTOR_BECAME_SLOW);
	assert_int_equal(look(&job).pace.baseline_ns, 200 * MS);
	detector_free(job.det);
}

static void detector_finds_a_blocked_worker_and_its_return(void **state)
{
	struct job job = job_new();
	int64_t floor_ns = detector_default_config.blocked_floor_ns;

	(void)state;
	job_iterate(&job, 1, 100);
	assert_int_equal(detector_tick(job.det, job.now_ns + floor_ns - 1), 0);
	assert_int_equal(detector_tick(job.det, job.now_ns + floor_ns), DETECTOR_BECAME_BLOCKED);
	assert_int_equal(detector_tick(job.det, job.now_ns + 2 * floor_ns), 0); /* once */
	assert_int_equal(look(&job).state, DETECTOR_BLOCKED);
	job.events = 0;
	job.now_ns += 3 * floor_ns;
	job_iterate(&job, 1, 1);
	assert_true(take_events(&job) & DETECTOR_UNBLOCKED);
	/* It took 30 s and ended by itself: that long is no block any more. */
	assert_int_equal(detector_tick(job.det, job.now_ns + 3 * floor_ns), 0);
	assert_int_equal(detector_tick(job.det, job.now_ns + 5 * floor_ns),
			 DETECTOR_BECAME_BLOCKED);
	detector_free(job.det);
}

static void detector_waits_five_long_iterations_before_it_says_blocked(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 100, 100); /* 10 s each */
	assert_int_equal(detector_tick(job.det, job.now_ns + 49 * NSEC_PER_SEC), 0);
	assert_int_equal(detector_tick(job.det, job.now_ns + 50 * NSEC_PER_SEC),
			 DETECTOR_BECAME_BLOCKED);
	detector_free(job.det);
}

static void detector_is_never_blocked_while_it_learns(void **state)
{
	struct job job = job_new();

	(void)state;
	assert_int_equal(detector_tick(job.det, 3600 * NSEC_PER_SEC), 0);
	job_iterate(&job, 1, 5);
	assert_int_equal(detector_tick(job.det, 7200 * NSEC_PER_SEC), 0);
	detector_free(job.det);
}

static void detector_waits_long_for_a_job_whose_pace_it_does_not_know_yet(void **state)
{
	struct job job = job_new();
	int64_t limit_ns = detector_default_config.pause_limit_ns;

	(void)state;
	job_iterate(&job, 1, 20); /* an iteration is known, the pace after 50 more */
	assert_int_equal(look(&job).blocked_limit_ns, limit_ns);
	assert_int_equal(detector_tick(job.det, job.now_ns + limit_ns - 1), 0);
	assert_int_equal(detector_tick(job.det, job.now_ns + limit_ns), DETECTOR_BECAME_BLOCKED);
	detector_free(job.det);
}

static void detector_does_not_measure_a_profiled_iteration(void **state)
{
	struct job job = job_new();

	(void)state;
	job_iterate(&job, 1, 100);
	detector_suspend(job.det, true);
	job_iterate(&job, 3, 40);
	assert_int_equal(detector_tick(job.det, job.now_ns + 60 * NSEC_PER_SEC), 0);
	job.now_ns += 20 * NSEC_PER_SEC; /* the trace is saved */
	detector_resume(job.det, job.now_ns);
	job_iterate(&job, 1, 100);
	assert_false(job.events & DETECTOR_BECAME_SLOW);
	assert_int_equal(look(&job).pace.mean_ns, 100 * MS);
	detector_free(job.det);
}

static void detector_sees_a_hang_in_a_window_that_stops_no_worker(void **state)
{
	struct job job = job_new();
	int64_t limit_ns;

	(void)state;
	job_iterate(&job, 30, 100); /* of 3 s: above the floor */
	limit_ns = look(&job).blocked_limit_ns;
	detector_suspend(job.det, false);
	limit_ns *= BLOCKED_SUSPENDED_FACTOR;
	assert_int_equal(look(&job).blocked_limit_ns, limit_ns);
	assert_int_equal(detector_tick(job.det, job.now_ns + limit_ns - 1), 0);
	assert_int_equal(detector_tick(job.det, job.now_ns + limit_ns), DETECTOR_BECAME_BLOCKED);
	detector_resume(job.det, job.now_ns + limit_ns);
	assert_int_equal(look(&job).state, DETECTOR_BLOCKED); /* until a mark comes */
	job_iterate(&job, 1, 100);
	assert_int_equal(look(&job).state, DETECTOR_WATCHING);
	detector_free(job.det);
}

static void detector_measures_steps_without_a_loader_and_own_marks(void **state)
{
	static const enum mark kinds[] = { MARK_OPTIMIZER, MARK_ITERATION };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct job job = job_new();

		for (unsigned i = 0; i < 100; i++)
			job_mark(&job, kinds[k], 1, 50 * MS);
		assert_int_equal(look(&job).pace.baseline_ns, 50 * MS);
		for (unsigned i = 0; i < 20; i++)
			job_mark(&job, kinds[k], 1, 80 * MS);
		assert_true(take_events(&job) & DETECTOR_BECAME_SLOW);
		detector_free(job.det);
	}
}

static void detector_survives_marks_out_of_order_and_of_no_kind(void **state)
{
	struct job job = job_new();
	uint64_t rng = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct ring_record record = {
			.time_ns = (int64_t)(splitmix_next(&rng) >> (splitmix_next(&rng) % 64)),
			.kind = (uint16_t)(splitmix_next(&rng) % 9),
			.detail = (uint16_t)splitmix_next(&rng),
		};

		(void)detector_mark(job.det, &record);
		(void)detector_tick(job.det, (int64_t)(splitmix_next(&rng) >> 1));
	}
	detector_free(job.det);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detector_learns_watches_and_notices_a_slowdown),
		cmocka_unit_test(detector_knows_the_step_of_a_slowdown_until_it_is_accepted),
		cmocka_unit_test(detector_sees_what_is_slow_between_step_and_next_loader_call),
		cmocka_unit_test(detector_does_not_take_an_evaluation_for_a_slowdown),
		cmocka_unit_test(detector_keeps_its_baseline_over_a_long_evaluation),
		cmocka_unit_test(detector_starts_anew_with_another_loop),
		cmocka_unit_test(detector_finds_a_blocked_worker_and_its_return),
		cmocka_unit_test(detector_waits_five_long_iterations_before_it_says_blocked),
		cmocka_unit_test(detector_is_never_blocked_while_it_learns),
		cmocka_unit_test(detector_waits_long_for_a_job_whose_pace_it_does_not_know_yet),
		cmocka_unit_test(detector_does_not_measure_a_profiled_iteration),
		cmocka_unit_test(detector_sees_a_hang_in_a_window_that_stops_no_worker),
		cmocka_unit_test(detector_measures_steps_without_a_loader_and_own_marks),
		cmocka_unit_test(detector_survives_marks_out_of_order_and_of_no_kind),
	};

	return run_sequence_tests() + run_loop_tests() + run_pace_tests() + run_jobwatch_tests() +
	       cmocka_run_group_tests_name("detector", tests, NULL, NULL);
}
