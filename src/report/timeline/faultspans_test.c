/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/faultspans.h"

#include "base/test_alloc.h"
#include "report/timeline/test_traces.h"

#include <errno.h>

static struct trace trace;
static struct faultspans faults;

static int begin(void **state)
{
	(void)state;
	test_trace_init(&trace);
	return 0;
}

static int end(void **state)
{
	(void)state;
	faultspans_done(&faults);
	trace_done(&trace);
	return 0;
}

static void find(const char *name, enum event_class class, double delta_ms)
{
	static struct finding finding;
	static const struct finding *const list[] = { &finding };

	finding = (struct finding){ .name = name,
				    .class = class,
				    .delta_ms_per_iteration = delta_ms };
	faultspans_done(&faults);
	assert_int_equal(faultspans_find(&trace, list, 1, &faults), 0);
}

static void assert_span(size_t idx, double from_ms, double to_ms)
{
	assert_true(idx < faults.spans.cnt);
	assert_int_equal(faults.spans.data[idx].start_ns, (int64_t)(from_ms * MS));
	assert_int_equal(faults.spans.data[idx].end_ns, (int64_t)(to_ms * MS));
}

static void executions_of_the_named_function_are_spans(void **state)
{
	(void)state;
	test_event(&trace, 0, KIND_PYTHON, "/usr/lib/site/torch/utils/data.py(4): get", 0, 10);
	test_event(&trace, 1, KIND_KERNEL, "void at::native::kernel<float>(int, int)", 2, 3);
	test_event(&trace, 0, KIND_PYTHON, "/usr/lib/site/mytorch/utils/data.py(4): get", 12, 13);
	find("torch/utils/data.py(4): get", CLASS_HOST, 5);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 0, 10);
	assert_non_null(faultspans_of(&faults, &trace.events[0]));
	assert_null(faultspans_of(&faults, &trace.events[1]));
	find("at::native::kernel<float>", CLASS_COMPUTE, 5);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 2, 3);
}

/* Between the calls of forward, and before its end. */
static void play_gaps(void)
{
	test_event(&trace, 0, KIND_ANNOTATION, "forward", 0, 100);
	test_event(&trace, 0, KIND_OPERATOR, "aten::view", 10, 20);
	test_event(&trace, 0, KIND_OPERATOR, "inner", 12, 15);
	test_event(&trace, 0, KIND_OPERATOR, "aten::mm", 60, 70);
	test_event(&trace, 0, KIND_OPERATOR, "backward", 130, 140);
}

static void a_gap_is_found_by_what_is_before_and_behind_it(void **state)
{
	(void)state;
	play_gaps();
	find("idle in forward, after aten::view, before aten::mm", CLASS_IDLE, 40);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 20, 60);
	assert_true(faults.spans.data[0].idle);
	find("idle in forward, before aten::view", CLASS_IDLE, 10);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 0, 10);
	find("idle in forward, after aten::mm", CLASS_IDLE, 30);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 70, 100);
	find("idle in the training thread, after forward, before backward", CLASS_IDLE, 30);
	assert_int_equal(faults.spans.cnt, 1);
	assert_span(0, 100, 130);
	find("idle in forward, after aten::add, before aten::mm", CLASS_IDLE, 40);
	assert_int_equal(faults.spans.cnt, 0);
}

static void gaps_far_shorter_than_the_loss_are_usual(void **state)
{
	(void)state;
	play_gaps();
	find("idle in forward, after aten::view, before aten::mm", CLASS_IDLE, 500);
	assert_int_equal(faults.spans.cnt, 0);
}

static void without_a_place_all_gaps_of_the_context_are_spans(void **state)
{
	(void)state;
	play_gaps();
	find("idle in forward", CLASS_IDLE, 40);
	assert_int_equal(faults.spans.cnt, 3);
	assert_span(0, 0, 10);
	assert_span(1, 20, 60);
	assert_span(2, 70, 100);
}

static void failed_allocations_are_errors(void **state)
{
	static const struct finding finding = { .name = "idle in forward",
						.class = CLASS_IDLE,
						.delta_ms_per_iteration = 1 };
	static const struct finding *const list[] = { &finding };

	(void)state;
	play_gaps();
	for (int n = 0, error = -ENOMEM; error == -ENOMEM; n++) {
		faultspans_done(&faults);
		allocations_left = n;
		error = faultspans_find(&trace, list, 1, &faults);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
	}
	assert_int_equal(faults.spans.cnt, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(executions_of_the_named_function_are_spans),
		TEST(a_gap_is_found_by_what_is_before_and_behind_it),
		TEST(gaps_far_shorter_than_the_loss_are_usual),
		TEST(without_a_place_all_gaps_of_the_context_are_spans),
		TEST(failed_allocations_are_errors),
	};

	return cmocka_run_group_tests_name("faultspans", tests, NULL, NULL);
}
