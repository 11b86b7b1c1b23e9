/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of windows, from the time around them. */
#include "base/clock.h"
#include "live/hub/test_states.h"
#include "live/overhead/overhead.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORKERS 4
#define TICK_NS (100 * NSEC_PER_MSEC)
#define STEP_NS (20 * NSEC_PER_MSEC)

static const struct run_options options = { .budget_always_frac = 0.005,
					    .budget_window_frac = 0.03,
					    .audit_every_ns = 600 * NSEC_PER_SEC,
					    .recent_cnt = 50 };

/* A steady job. */
struct job {
	struct overhead overhead;
	struct wire_state states[WORKERS];
	int64_t now_ns;
	unsigned published;
};

static void job_init(struct job *job, const struct run_options *how)
{
	*job = (struct job){ .now_ns = NSEC_PER_SEC };
	overhead_init(&job->overhead, how);
	for (int i = 0; i < WORKERS; i++) {
		job->states[i] = test_worker(i, 100, STEP_NS);
		job->states[i].last_ns = job->now_ns;
	}
}

/* Lets time pass; step_ns: the iteration time of all workers, which are in this phase. */
static void train(struct job *job, int64_t ns, enum wire_phase phase, int64_t step_ns)
{
	for (int64_t until_ns = job->now_ns + ns; job->now_ns < until_ns;) {
		struct wire_slices order;
		unsigned actions;

		job->now_ns += TICK_NS;
		for (size_t i = 0; i < WORKERS; i++) {
			struct wire_state *state = &job->states[i];
			int64_t steps = (job->now_ns - state->last_ns) / step_ns;

			state->phase = phase;
			state->step += (uint64_t)steps;
			state->last_ns += steps * step_ns;
		}
		actions = overhead_tick(&job->overhead, job->states, WORKERS, phase == PHASE_STEADY,
					job->now_ns, &order);
		job->published += (actions & OVERHEAD_PUBLISH) != 0;
	}
}

/* The slices measured 1.2 %; no more of them follow. Then a window, and the time around it. */
static struct wire_overhead window_of(struct job *job, const struct run_options *how, int64_t ns,
				      const double factors[static 3])
{
	struct wire_overhead overhead;
	double pairs[10];

	job_init(job, how);
	job->overhead.series[OVERHEAD_ALWAYS].due_ns =
		job->overhead.series[OVERHEAD_WINDOW].due_ns = INT64_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		pairs[i] = log1p(0.012) + 0.0005 * ((double)i - 4.5);
	series_add(&job->overhead.series[OVERHEAD_WINDOW].pairs, pairs, ARRAY_SIZE(pairs));
	train(job, 15 * NSEC_PER_SEC, PHASE_STEADY, (int64_t)(STEP_NS * factors[0]));
	train(job, ns, PHASE_PROFILING, (int64_t)(STEP_NS * factors[1]));
	train(job, 15 * NSEC_PER_SEC, PHASE_STEADY, (int64_t)(STEP_NS * factors[2]));
	overhead_results(&job->overhead, &overhead);
	return overhead;
}

static void test_a_window_dearer_than_its_slices_is_reported(void **state)
{
	static const double dear[] = { 1, 1.08, 1 };
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	overhead = window_of(&job, &options, 10 * NSEC_PER_SEC, dear);
	assert_float_equal(overhead.window.frac, 0.08, 0.005);
	assert_true(overhead.window.low_frac > 0.02 && overhead.window.high_frac < 0.14);
	assert_int_equal(overhead.window.pair_cnt, 1);
	assert_int_equal(job.published, 1);
	assert_int_equal(overhead.backoff, BACKOFF_NONE);
	/* A second window reduces the error; the cost holds without slices, too. */
	series_clear(&job.overhead.series[OVERHEAD_WINDOW].pairs);
	train(&job, 10 * NSEC_PER_SEC, PHASE_PROFILING, (int64_t)(STEP_NS * 1.08));
	train(&job, 15 * NSEC_PER_SEC, PHASE_STEADY, STEP_NS);
	overhead_results(&job.overhead, &overhead);
	assert_float_equal(overhead.window.frac, 0.08, 0.005);
	assert_int_equal(overhead.window.pair_cnt, 2);
	overhead_done(&job.overhead);
}

static void test_a_window_that_costs_what_its_slices_say_changes_nothing(void **state)
{
	static const double cheap[] = { 1, 1.012, 1 };
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	overhead = window_of(&job, &options, 10 * NSEC_PER_SEC, cheap);
	assert_float_equal(overhead.window.frac, 0.012, 1e-9);
	assert_int_equal(overhead.window.pair_cnt, 10);
	assert_int_equal(job.overhead.around.window_cnt, 1);
	overhead_done(&job.overhead);
}

/* The slowdown that caused the window, and its end, are not overhead. */
static void test_a_job_that_changes_around_a_window_gives_no_cost(void **state)
{
	static const double changes[][3] = { { 1, 1.3, 1.3 }, { 1.3, 1.3, 1 }, { 1, 1.1, 1.2 } };
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		overhead = window_of(&job, &options, 10 * NSEC_PER_SEC, changes[i]);
		assert_float_equal(overhead.window.frac, 0.012, 1e-9);
		overhead_done(&job.overhead);
	}
}

static void test_windows_that_cannot_be_compared_are_ignored(void **state)
{
	static const double dear[] = { 1, 1.08, 1 };
	struct run_options no_audit = options, torch = options;
	struct job job;

	(void)state;
	no_audit.no_audit = true;
	torch.source = ORDER_SOURCE_TORCH; /* its export stops the job */
	(void)window_of(&job, &no_audit, 10 * NSEC_PER_SEC, dear);
	assert_int_equal(job.overhead.around.window_cnt, 0);
	(void)window_of(&job, &torch, 10 * NSEC_PER_SEC, dear);
	assert_int_equal(job.overhead.around.window_cnt, 0);
	(void)window_of(&job, &options, NSEC_PER_SEC, dear); /* too short */
	assert_int_equal(job.overhead.around.window_cnt, 0);
	assert_int_equal(job.overhead.around.stage, AROUND_BEFORE);
	overhead_done(&job.overhead);
}

static void test_a_restarted_worker_has_no_time_around_a_window(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	train(&job, 15 * NSEC_PER_SEC, PHASE_STEADY, STEP_NS);
	train(&job, 10 * NSEC_PER_SEC, PHASE_PROFILING, 2 * STEP_NS);
	for (size_t i = 0; i < WORKERS; i++)
		job.states[i].step = 0;
	train(&job, 30 * NSEC_PER_SEC, PHASE_STEADY, STEP_NS);
	assert_int_equal(job.overhead.around.window_cnt, 0);
	assert_int_equal(job.overhead.around.stage, AROUND_BEFORE);
	overhead_done(&job.overhead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_dearer_than_its_slices_is_reported),
		cmocka_unit_test(test_a_window_that_costs_what_its_slices_say_changes_nothing),
		cmocka_unit_test(test_a_job_that_changes_around_a_window_gives_no_cost),
		cmocka_unit_test(test_windows_that_cannot_be_compared_are_ignored),
		cmocka_unit_test(test_a_restarted_worker_has_no_time_around_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
