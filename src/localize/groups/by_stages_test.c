/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline of four stages, two workers each, of which one may run more kernels or slower ones. */
#include "localize/test_job.h"

#include <string.h>

#define WORKERS 8
#define ITERATIONS 10
#define MICROBATCHES 8

/* Stage of worker w: w / 2. kernels: that a stage runs for a microbatch; ms: that one takes. */
static struct report play(const int kernels[static 4], const double ms[static 4], int microbatches)
{
	struct report report;
	struct test_job job;

	test_job_init(&job, WORKERS, 1000 * ITERATIONS, ITERATIONS);
	for (size_t w = 0; w < WORKERS; w++) {
		int stage = (int)w / 2, runs = kernels[stage] * microbatches;
		uint32_t gemm = test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "gemm");
		uint32_t send =
			test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "ncclDevKernel_SendRecv");
		struct fp_function *f =
			test_function(&job, w, gemm, CLASS_COMPUTE, runs * ms[stage] / 1000);

		f->executions = (uint64_t)runs * ITERATIONS;
		f->total_ns = (int64_t)(runs * ms[stage] * 1e6 * ITERATIONS);
		f = test_function(&job, w, send, CLASS_COMM, 0.1);
		f->executions = (uint64_t)((stage % 3 == 0 ? 2 : 4) * microbatches * ITERATIONS);
		job.workers[w].fp.class_ns[CLASS_COMPUTE] =
			(int64_t)(runs * ms[stage] * 1e6 * ITERATIONS);
	}
	report = test_localize(&job, NULL);
	test_job_done(&job);
	return report;
}

static void a_stage_with_more_of_the_same_kernels_is_cut_unevenly(void **state)
{
	const int kernels[] = { 10, 10, 14, 10 };
	const double ms[] = { 7, 7, 7, 7 };
	struct report report = play(kernels, ms, MICROBATCHES);

	(void)state;
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "uneven-stages");
	test_assert_ranks(&report.findings[0], "4-5");
	/* 7/8 of 784 - 616 ms */
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 147, 0.5);
	report_done(&report);
}

static void slower_kernels_are_no_uneven_cut(void **state)
{
	const int kernels[] = { 10, 10, 14, 10 };
	const double ms[] = { 7, 7, 8, 7 };
	struct report report = play(kernels, ms, MICROBATCHES);

	(void)state;
	assert_null(test_find(&report, "uneven-stages"));
	report_done(&report);
}

static void stages_that_differ_by_a_little_are_healthy(void **state)
{
	const int kernels[] = { 20, 20, 21, 20 };
	const double ms[] = { 3.5, 3.5, 3.5, 3.5 };
	struct report report = play(kernels, ms, MICROBATCHES);

	(void)state;
	assert_int_equal(report.finding_cnt, 0);
	report_done(&report);
}

/* 4 % are saved: a layer more is no loss or embedding, which a stage has by design. */
static void a_layer_more_is_an_uneven_cut_though_it_costs_little(void **state)
{
	const int kernels[] = { 8, 8, 9, 8 };
	const double even[] = { 7, 7, 7, 7 }, longer[] = { 7, 7, 7.8, 7 };
	const int same[] = { 8, 8, 8, 8 };
	struct report report = play(kernels, even, MICROBATCHES);

	(void)state;
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "uneven-stages");
	test_assert_ranks(&report.findings[0], "4-5");
	report_done(&report);
	report = play(same, longer, MICROBATCHES);
	assert_null(test_find(&report, "uneven-stages"));
	report_done(&report);
}

/* With one microbatch the stages work one after the other: an even cut saves nothing. */
static void without_microbatches_an_even_cut_saves_nothing(void **state)
{
	const int kernels[] = { 10, 10, 14, 10 };
	const double ms[] = { 7, 7, 7, 7 };
	struct report report = play(kernels, ms, 1);

	(void)state;
	assert_null(test_find(&report, "uneven-stages"));
	report_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stage_with_more_of_the_same_kernels_is_cut_unevenly),
		cmocka_unit_test(slower_kernels_are_no_uneven_cut),
		cmocka_unit_test(stages_that_differ_by_a_little_are_healthy),
		cmocka_unit_test(a_layer_more_is_an_uneven_cut_though_it_costs_little),
		cmocka_unit_test(without_microbatches_an_even_cut_saves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
