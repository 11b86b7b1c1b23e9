/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/test_summary.h"

#include <math.h>

/* cnt steps of 1000 ns; each has an operator at 100 of the given length. */
static void play(const int64_t *lengths_ns, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		int64_t begin = (int64_t)i * 1000;

		event(KIND_ANNOTATION, "ProfilerStep#1", begin, begin + 1000);
		event(KIND_OPERATOR, "aten::view", begin + 100, begin + 100 + lengths_ns[i]);
	}
}

static void spread_is_the_deviation_over_the_iterations(void **state)
{
	static const int64_t lengths_ns[] = { 100, 300, 200 };
	const struct fp_function *f;
	struct fingerprint fp;

	(void)state;
	play(lengths_ns, 3);
	fp = summarized();
	assert_int_equal(fp.iteration_cnt, 3);
	f = function_at(&fp, "aten::view", CLASS_HOST);
	assert_non_null(f);
	assert_true(fabs(f->spread_ns - 100) < 1e-6);
	fingerprint_done(&fp);
}

/* 200 ns an iteration, by a sample each 200 ns: one sample, more or less one. */
static void sampled_functions_vary_by_the_root_of_their_samples(void **state)
{
	static const int64_t lengths_ns[] = { 200, 200, 200, 200 };
	const struct fp_function *f;
	struct fingerprint fp;

	(void)state;
	trace.meta.sample_ns = 200;
	play(lengths_ns, 4);
	fp = summarized();
	f = function_at(&fp, "aten::view", CLASS_HOST);
	assert_true(fabs(f->spread_ns - 200) < 1e-6);
	fingerprint_done(&fp);
}

static void one_iteration_has_no_spread(void **state)
{
	static const int64_t lengths_ns[] = { 100 };
	struct fingerprint fp;

	(void)state;
	play(lengths_ns, 1);
	fp = summarized();
	for (size_t i = 0; i < fp.function_cnt; i++)
		assert_true(fp.functions[i].spread_ns == 0);
	fingerprint_done(&fp);
}

/* Iterations of random lengths: compares with mean and deviation computed directly. */
static void spread_agrees_with_its_definition(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 20; round++) {
		int64_t lengths_ns[12];
		double sum = 0, squares = 0;
		struct fingerprint fp;
		size_t seen = 0;

		if (round > 0)
			(void)trace_new(NULL);
		for (size_t i = 0; i < 12; i++) {
			lengths_ns[i] = 50 + (int64_t)(test_random(&seed) % 500);
			sum += (double)lengths_ns[i];
			squares += (double)(lengths_ns[i] * lengths_ns[i]);
		}
		play(lengths_ns, 12);
		fp = summarized();
		for (size_t i = 0; i < fp.function_cnt; i++) {
			if (fp.functions[i].share_ns != (int64_t)sum)
				continue;
			seen++;
			assert_true(fabs(fp.functions[i].spread_ns -
					 sqrt((squares - sum * sum / 12) / 11)) < 1e-6);
		}
		assert_true(seen > 0);
		fingerprint_done(&fp);
		(void)trace_free(NULL);
	}
	(void)trace_new(NULL);
}

static uint32_t kernel(uint16_t stream, const char *name, int64_t start_ns, int64_t dur_ns,
		       uint32_t launch)
{
	uint32_t e = trace_event(&trace, KIND_KERNEL, stream, name, start_ns, dur_ns);

	trace.events[e].parent = launch;
	return e;
}

static void a_kernel_is_launched_by_the_operators_of_most_of_its_time(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;
	uint32_t first, second;
	const struct fp_function *f;

	(void)state;
	trace.meta.has_device = true;
	event(KIND_PYTHON, "main", 0, 1000);
	event(KIND_OPERATOR, "aten::linear", 100, 200);
	event(KIND_OPERATOR, "aten::addmm", 110, 190);
	first = event(KIND_RUNTIME, "cudaLaunchKernel", 120, 130);
	event(KIND_OPERATOR, "aten::mm", 300, 400);
	second = event(KIND_RUNTIME, "cudaLaunchKernel", 320, 330);
	kernel(stream, "gemm", 500, 300, first);
	kernel(stream, "gemm", 850, 100, second);
	fp = summarized();
	f = function_at(&fp, "gemm", CLASS_COMPUTE);
	assert_non_null(f);
	assert_string_equal(f->launched_by, "aten::linear > aten::addmm");
	f = function_at(&fp, "main", CLASS_HOST);
	assert_true(f == NULL || f->launched_by == NULL);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(spread_is_the_deviation_over_the_iterations),
		TEST(sampled_functions_vary_by_the_root_of_their_samples),
		TEST(one_iteration_has_no_spread),
		TEST(spread_agrees_with_its_definition),
		TEST(a_kernel_is_launched_by_the_operators_of_most_of_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
