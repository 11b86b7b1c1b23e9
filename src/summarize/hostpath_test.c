/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does at each moment, where its events are no plain nest of calls. */
#include "summarize/test_summary.h"

/* A library's call, beside which its operator runs a few others; a wrapper does nothing itself. */
static void an_operator_that_computes_mostly_itself_is_no_wrapper(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_OPERATOR, "aten::mkldnn_rnn_layer", 0, 400000);
	event(KIND_OPERATOR, "aten::zeros", 0, 100000);
	event(KIND_OPERATOR, "aten::mul", 100000, 200000);
	event(KIND_OPERATOR, "aten::linear", 400000, 800000);
	event(KIND_OPERATOR, "aten::addmm", 500000, 700000);
	fp = summarized();
	assert_share(&fp, "aten::mkldnn_rnn_layer", CLASS_COMPUTE, 200000);
	assert_share(&fp, "aten::linear", CLASS_HOST, 200000);
	assert_share(&fp, "aten::linear/aten::addmm", CLASS_COMPUTE, 200000);
	fingerprint_done(&fp);
}

/* The first sample of the program came late, when an operator had begun. */
static void a_program_that_seems_to_begin_in_an_operator_follows_it(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_OPERATOR, "backward", 0, 400000);
	event(KIND_OPERATOR, "aten::mm", 0, 300000);
	event(KIND_PYTHON, "module", 100000, 900000);
	event(KIND_OPERATOR, "aten::mm", 500000, 700000);
	fp = summarized();
	assert_share(&fp, "backward/aten::mm", CLASS_COMPUTE, 100000);
	assert_share(&fp, "module/aten::mm", CLASS_COMPUTE, 200000);
	assert_share(&fp, "module", CLASS_HOST, 600000);
	fingerprint_done(&fp);
}

/* A call that seems to begin before its caller, by ids, is a call of it all the same. */
static void a_call_that_begins_before_its_caller_is_its_call(void **state)
{
	struct fingerprint fp;
	uint32_t next, step, forward;

	(void)state;
	next = event(KIND_PYTHON, "next", 100000, 300000);
	step = event(KIND_PYTHON, "step", 150000, 900000);
	trace.events[next].parent = step;
	forward = event(KIND_PYTHON, "forward", 300000, 800000);
	trace.events[forward].parent = step;
	event(KIND_OPERATOR, "aten::mm", 400000, 600000);
	fp = summarized();
	assert_share(&fp, "step/next", CLASS_HOST, 150000);
	assert_share(&fp, "step/forward/aten::mm", CLASS_COMPUTE, 200000);
	assert_share(&fp, "step", CLASS_HOST, 100000);
	fingerprint_done(&fp);
}

/* record_function() begins its annotation in its own __enter__(), now earlier there, now later. */
static void an_annotation_begins_in_the_function_that_makes_it(void **state)
{
	(void)state;
	for (int64_t begin = 120000; begin <= 180000; begin += 30000) {
		struct fingerprint fp;

		event(KIND_PYTHON, "next", 100000, 900000);
		event(KIND_PYTHON, "torch/autograd/profiler.py(918): __enter__", 110000, 190000);
		event(KIND_PYTHON, "torch/_ops.py(1267): __call__", 115000, 185000);
		event(KIND_ANNOTATION, "enumerate(DataLoader)#Iter.__next__", begin, 890000);
		event(KIND_PYTHON, "fetch", 200000, 800000);
		fp = summarized();
		assert_share(&fp, "next/enumerate(DataLoader)#Iter.__next__/fetch", CLASS_HOST,
			     600000);
		fingerprint_done(&fp);
		if (begin < 180000) {
			(void)trace_free(NULL);
			(void)trace_new(NULL);
		}
	}
}

/* A step of the profiler that begins early in a function hides none of the function's calls. */
static void a_step_that_begins_in_a_function_leaves_its_calls(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "train", 0, 500000);
	event(KIND_ANNOTATION, "ProfilerStep#2", 20000, 1600000);
	event(KIND_PYTHON, "forward", 100000, 400000);
	fp = summarized();
	assert_share(&fp, "train/forward", CLASS_HOST, 300000);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_operator_that_computes_mostly_itself_is_no_wrapper),
		TEST(a_program_that_seems_to_begin_in_an_operator_follows_it),
		TEST(a_call_that_begins_before_its_caller_is_its_call),
		TEST(an_annotation_begins_in_the_function_that_makes_it),
		TEST(a_step_that_begins_in_a_function_leaves_its_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
