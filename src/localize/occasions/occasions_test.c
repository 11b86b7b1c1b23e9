/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that workers have together, as of a checkpoint, and by turns. */
#include "localize/test_fixture.h"

#define WORKERS 4
#define ITERATIONS 4
#define PAUSE_MS 60

static const struct test_place pause = { NULL, KIND_OTHER, "idle after aten::mm", CLASS_IDLE };
static struct fp_iteration_use uses[WORKERS][ITERATIONS];

/* Each worker pauses once; their devices have no work then. No collectives: stages of a pipeline. */
static void play(bool by_turns)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			bool pauses = i == (by_turns ? w : 1);

			test_work(&job, w, &test_mm, 100);
			if (pauses)
				test_work(&job, w, &pause, PAUSE_MS);
			uses[w][i] = (struct fp_iteration_use){
				.busy_ns = 100000000, .starved_ns = pauses ? PAUSE_MS * 1000000 : 0
			};
		}
	}
	test_finish(&job);
	for (size_t w = 0; w < WORKERS; w++) {
		assert_int_equal(job.workers[w].fp.iteration_cnt, ITERATIONS);
		job.workers[w].fp.uses = uses[w];
		job.workers[w].fp.use_cnt = ITERATIONS;
	}
	report = test_localize(&job, NULL);
}

static void what_all_do_in_one_iteration_is_no_fault(void **state)
{
	(void)state;
	play(false);
	assert_int_equal(report.finding_cnt, 0);
}

static void what_each_does_in_another_iteration_costs_each_of_them(void **state)
{
	(void)state;
	play(true);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "0-3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, PAUSE_MS, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_all_do_in_one_iteration_is_no_fault, done),
		cmocka_unit_test_teardown(what_each_does_in_another_iteration_costs_each_of_them,
					  done),
	};

	return cmocka_run_group_tests_name("occasions", tests, NULL, NULL);
}
