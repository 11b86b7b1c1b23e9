/* SPDX-License-Identifier: Apache-2.0 */
/* A wait for a device whose work was launched before the window, and one that is the job's. */
#include "localize/test_fixture.h"

#define WORKERS 4
#define ITERATIONS 6

static const struct test_place syncs = { "read_loss", KIND_RUNTIME, "cudaStreamSynchronize",
					 CLASS_HOST };
static struct fp_iteration_use uses[WORKERS][ITERATIONS];

/* Worker 2 waits for a device without work, in the first iterations only. */
static void play(int waits, double ms)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		if (i < waits)
			test_work(&job, 2, &syncs, ms);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(&job, w, &test_mm, 80);
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		struct fingerprint *fp = &job.workers[w].fp;

		assert_int_equal(fp->iteration_cnt, ITERATIONS);
		for (int i = 0; i < ITERATIONS; i++) {
			int64_t idle_ns = w == 2 && i < waits ? (int64_t)(ms * 1e6) : 0;

			uses[w][i] =
				(struct fp_iteration_use){ .busy_ns = fp->iterations[i].dur_ns -
								      idle_ns };
		}
		fp->uses = uses[w];
		fp->use_cnt = ITERATIONS;
	}
	report = test_localize(&job, NULL);
}

static void waiting_for_work_from_before_the_window_is_no_fault(void **state)
{
	(void)state;
	play(1, 60);
	assert_int_equal(report.finding_cnt, 0);
}

static void waiting_in_each_iteration_is_one(void **state)
{
	(void)state;
	play(ITERATIONS, 60);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "2");
}

/* Each rank starts its profiler in its own time. */
static void the_profiler_itself_is_no_fault(void **state)
{
	static const struct test_place start = { NULL, KIND_PYTHON,
						 "torch/profiler/profiler.py(342): start_trace",
						 CLASS_HOST };

	(void)state;
	test_play_late(&job, &start, 1, 30);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(waiting_for_work_from_before_the_window_is_no_fault,
					  done),
		cmocka_unit_test_teardown(waiting_in_each_iteration_is_one, done),
		cmocka_unit_test_teardown(the_profiler_itself_is_no_fault, done),
	};

	return cmocka_run_group_tests_name("beginning", tests, NULL, NULL);
}
