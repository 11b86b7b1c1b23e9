/* SPDX-License-Identifier: Apache-2.0 */
/* Through window_find(): what is found where the traces do not mark iterations. */
#include "summarize/repeats.h"

#include "summarize/test_window.h"

static void expect(enum iterations_by by)
{
	struct window w = found(NULL);

	assert_int_equal(w.iterations_by, by);
	window_done(&w);
}

/* Two layers and an update of each iteration; cnt iterations of 100 ns from start_ns on. */
static void add_kernels(uint16_t thread, uint16_t stream, int64_t start_ns, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		int64_t at = start_ns + 100 * i;

		trace_event(&trace, KIND_OPERATOR, thread, "aten::linear", at, 5);
		trace_event(&trace, KIND_KERNEL, stream, "gemm", at + 10, 20);
		trace_event(&trace, KIND_KERNEL, stream, "gemm", at + 30, 20);
		trace_event(&trace, KIND_KERNEL, stream, "update", at + 60, 20);
	}
}

static void kernels_that_recur_divide_a_trace_that_marks_nothing(void **state)
{
	uint16_t thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct window w;

	(void)state;
	add_kernels(thread, stream, 0, 10);
	w = found(NULL);
	assert_int_equal(w.iterations_by, ITERATIONS_REPEATS);
	assert_int_equal(w.iterations.cnt, 9);
	assert_int_equal(w.iterations.data[3].dur_ns, 100);
	assert_int_equal(w.start_ns, 0); /* the whole trace stays the window */
	assert_int_equal(w.end_ns, 980);
	window_done(&w);
}

static void collectives_divide_a_trace_without_a_device(void **state)
{
	uint16_t thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	struct window w;

	(void)state;
	for (int i = 0; i < 12; i++) {
		trace_event(&trace, KIND_OPERATOR, thread, "aten::linear", 100 * i, 40);
		trace_event(&trace, KIND_ANNOTATION, thread, "gloo:all_reduce", 100 * i + 50, 30);
	}
	w = found(NULL);
	assert_int_equal(w.iterations_by, ITERATIONS_REPEATS);
	assert_int_equal(w.iterations.cnt, 11);
	window_done(&w);
}

static void collectives_of_several_sizes_are_one_iteration(void **state)
{
	uint16_t thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	struct window w;

	(void)state;
	for (int i = 0; i < 24; i++) {
		uint32_t event;

		trace_event(&trace, KIND_OPERATOR, thread, "aten::linear", 100 * i, 40);
		event = trace_event(&trace, KIND_ANNOTATION, thread, "gloo:all_reduce",
				    100 * i + 50, 30);
		trace_args(&trace, event)->elements = i % 3 == 0 ? 100 : 200;
	}
	w = found(NULL);
	assert_int_equal(w.iterations_by, ITERATIONS_REPEATS);
	assert_int_equal(w.iterations.cnt, 7);
	assert_int_equal(w.iterations.data[0].dur_ns, 300);
	window_done(&w);
}

static void marks_and_optimizer_steps_come_first(void **state)
{
	uint16_t thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);

	(void)state;
	trace_event(&trace, KIND_ANNOTATION, thread, "Optimizer.step#Adam.step", 0, 50);
	add_kernels(thread, stream, 60, 10);
	trace_event(&trace, KIND_ANNOTATION, thread, "Optimizer.step#Adam.step", 1100, 50);
	expect(ITERATIONS_OPTIMIZER);
}

static void what_recurs_in_a_part_of_the_trace_or_in_a_live_window_is_no_iteration(void **state)
{
	uint16_t thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);

	(void)state;
	trace_event(&trace, KIND_OPERATOR, thread, "aten::to", 0, 500);
	add_kernels(thread, stream, 500, 10);
	expect(ITERATIONS_UNKNOWN);
	trace_done(&trace);
	trace_start(&trace);
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	trace.meta.sampled = true;
	add_kernels(thread, stream, 0, 10);
	expect(ITERATIONS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernels_that_recur_divide_a_trace_that_marks_nothing),
		TEST(collectives_divide_a_trace_without_a_device),
		TEST(collectives_of_several_sizes_are_one_iteration),
		TEST(marks_and_optimizer_steps_come_first),
		TEST(what_recurs_in_a_part_of_the_trace_or_in_a_live_window_is_no_iteration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
