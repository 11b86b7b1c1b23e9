/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test_alloc.h"
#include "summarize/test_summary.h"

#include <errno.h>
#include <stdlib.h>

#define US 1000
#define MS (1000 * US)
#define STEPS 8
#define OPERATORS 40	   /* of each step, by turns of five names */
#define STEP_NS (200 * MS) /* from one step to the next */

static const char *const names[] = { "aten::add", "aten::mul", "aten::view", "aten::t",
				     "aten::div" };

/* By step and operator: its length, 20 us unless the test says otherwise. */
static int64_t lengths_ns[STEPS][OPERATORS];

static int lengths_new(void **state)
{
	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < OPERATORS; k++)
			lengths_ns[i][k] = 20 * US;
	}
	return trace_new(state);
}

/* Operators one behind the other, 10 us apart. kind: of the events named in `names`. */
static void play(enum event_kind kind)
{
	for (size_t i = 0; i < STEPS; i++) {
		int64_t now = (int64_t)i * STEP_NS;

		event(KIND_ANNOTATION, "ProfilerStep#1", now, now + STEP_NS);
		for (size_t k = 0; k < OPERATORS; k++) {
			event(kind, names[k % 5], now, now + lengths_ns[i][k]);
			now += lengths_ns[i][k] + 10 * US;
		}
	}
}

static struct fingerprint played(enum event_kind kind)
{
	play(kind);
	return summarized();
}

static void short_operators_that_take_milliseconds_once_stall(void **state)
{
	const struct fp_function *f;
	struct fingerprint fp;

	(void)state;
	lengths_ns[2][0] = 8 * MS; /* aten::add */
	lengths_ns[2][6] = 4 * MS; /* aten::mul */
	lengths_ns[5][11] = 12 * MS;
	fp = played(KIND_OPERATOR);
	assert_true(fp.stalls.known);
	assert_int_equal(fp.stalls.cnt, 3);
	assert_int_equal(fp.stalls.inside_cnt, 3);
	assert_int_equal(fp.stalls.median_ns, 8 * MS);
	assert_int_equal(fp.stalls.longest_ns, 12 * MS);
	assert_int_equal(fp.stalls.iteration_cnt, STEPS);
	assert_int_equal(fp.stalls.iteration_ns[2], 12 * MS);
	assert_int_equal(fp.stalls.iteration_ns[5], 12 * MS);
	assert_int_equal(fp.stalls.iteration_ns[0], 0);
	assert_int_equal(fp.stalls.name_cnt, 2);
	assert_string_equal(fp.stalls.names[0].name, "aten::mul");
	assert_int_equal(fp.stalls.names[0].cnt, 2);
	assert_int_equal(fp.stalls.names[0].ns, 16 * MS);
	f = function_at(&fp, "aten::mul", CLASS_COMPUTE);
	assert_non_null(f);
	assert_int_equal(f->stall_ns, 16 * MS);
	fingerprint_done(&fp);
}

/* The last layer of a model is long in each iteration, and no stall of its function. */
static void what_is_long_in_each_iteration_does_not_stall(void **state)
{
	struct fingerprint fp;

	(void)state;
	for (size_t i = 0; i < STEPS; i++)
		lengths_ns[i][30] = 8 * MS + (int64_t)i * 50 * US;
	lengths_ns[4][15] = 6 * MS; /* the same function, beside it */
	fp = played(KIND_OPERATOR);
	assert_int_equal(fp.stalls.cnt, 1);
	assert_int_equal(fp.stalls.iteration_ns[4], 8200 * US); /* which of the two: not known */
	fingerprint_done(&fp);
}

/* Larger inputs, or the first use of each function. */
static void an_iteration_in_which_much_is_long_has_no_stalls(void **state)
{
	struct fingerprint fp;

	(void)state;
	for (size_t k = 0; k < 20; k++)
		lengths_ns[0][k] = 4 * MS;
	lengths_ns[3][0] = 4 * MS;
	fp = played(KIND_OPERATOR);
	assert_int_equal(fp.stalls.cnt, 1);
	assert_int_equal(fp.stalls.iteration_ns[0], 0);
	assert_int_equal(fp.stalls.iteration_ns[3], 4 * MS);
	fingerprint_done(&fp);
}

static void functions_that_usually_are_long_do_not_stall(void **state)
{
	struct fingerprint fp;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		for (size_t k = 0; k < OPERATORS; k += 5)
			lengths_ns[i][k] = 600 * US;
	}
	lengths_ns[3][0] = 40 * MS;
	fp = played(KIND_OPERATOR);
	assert_int_equal(fp.stalls.cnt, 0);
	fingerprint_done(&fp);
}

static void python_stalls_are_not_inside_operators(void **state)
{
	struct fingerprint fp;

	(void)state;
	lengths_ns[3][1] = 8 * MS;
	fp = played(KIND_PYTHON);
	assert_int_equal(fp.stalls.cnt, 1);
	assert_int_equal(fp.stalls.inside_cnt, 0);
	assert_int_equal(fp.stalls.name_cnt, 0);
	fingerprint_done(&fp);
}

/* So many that a stall among them is rare. */
static void play_others(int64_t now)
{
	for (size_t k = 0; k < OPERATORS; k++)
		event(KIND_OPERATOR, "aten::empty", now + (int64_t)k * 30 * US,
		      now + (int64_t)k * 30 * US + 20 * US);
}

/* One event of each step, which takes 20 ms in the fourth one, and others. */
static struct fingerprint played_one(enum event_kind kind, const char *name)
{
	for (size_t i = 0; i < STEPS; i++) {
		int64_t now = (int64_t)i * STEP_NS;

		event(KIND_ANNOTATION, "ProfilerStep#1", now, now + STEP_NS);
		event(kind, name, now, now + (i == 3 ? 20 * MS : 50 * US));
		play_others(now + 100 * MS);
	}
	return summarized();
}

static void collections_and_waits_are_no_stalls(void **state)
{
	static const struct {
		enum event_kind kind;
		const char *name;
		uint64_t stalls;
	} cases[] = {
		{ KIND_OPERATOR, "aten::add", 1 },
		{ KIND_RUNTIME, "cudaLaunchKernel", 1 },
		{ KIND_GC, "gc: collect generation 2", 0 },
		{ KIND_RUNTIME, "cudaStreamSynchronize", 0 },
		{ KIND_RUNTIME, "cudaMalloc", 0 },
		{ KIND_RUNTIME, "cudaHostAlloc", 0 },
		{ KIND_OPERATOR, "c10d::allreduce_", 0 },
		{ KIND_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
		  0 },
	};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct fingerprint fp;

		if (n > 0)
			(void)trace_new(NULL);
		fp = played_one(cases[n].kind, cases[n].name);
		assert_int_equal(fp.stalls.cnt, cases[n].stalls);
		fingerprint_done(&fp);
		if (n + 1 < ARRAY_SIZE(cases))
			(void)trace_free(NULL);
	}
}

static void what_device_work_hides_is_no_stall(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		int64_t now = (int64_t)i * STEP_NS;

		event(KIND_ANNOTATION, "ProfilerStep#1", now, now + STEP_NS);
		event(KIND_OPERATOR, "aten::add", now,
		      now + (i == 3 || i == 5 ? 20 * MS : 50 * US));
		(void)trace_event(&trace, KIND_KERNEL, stream, "gemm", now + 10 * US,
				  i == 3 ? 30 * MS : 13 * MS);
		play_others(now + 100 * MS);
	}
	fp = summarized();
	assert_int_equal(fp.stalls.cnt, 1);
	assert_int_equal(fp.stalls.iteration_ns[3], 0);
	assert_int_equal(fp.stalls.iteration_ns[5], 7 * MS);
	fingerprint_done(&fp);
}

static void lengths_of_waits_for_the_interpreter_are_counted(void **state)
{
	static const int64_t lengths[] = { 5100 * US, 15200 * US, 10200 * US,
					   4 * MS,    16 * MS,	  12 * MS };
	struct fingerprint fp;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		lengths_ns[i][i] = lengths[i];
	fp = played(KIND_OPERATOR);
	assert_int_equal(fp.stalls.cnt, ARRAY_SIZE(lengths));
	assert_int_equal(fp.stalls.switch_cnt, 2);
	fingerprint_done(&fp);
}

/*
 * Each second step stalls for 20 ms at its begin; another thread is in callee, called by a function of
 * the user, for within_ms of that and for between_ms later in every step.
 */
static struct fingerprint played_beside(const char *callee, int64_t within_ms, int64_t between_ms)
{
	uint16_t beside = trace_lane(&trace, LANE_THREAD, 1, 99);

	for (size_t i = 0; i < STEPS; i++) {
		int64_t now = (int64_t)i * STEP_NS, begin = now + US;

		event(KIND_ANNOTATION, "ProfilerStep#1", now, now + STEP_NS);
		event(KIND_OPERATOR, "aten::add", now, now + (i % 2 != 0 ? 20 * MS : 50 * US));
		if (i % 2 != 0) {
			(void)trace_event(&trace, KIND_PYTHON, beside, "train.py(9): export", begin,
					  within_ms * MS);
			(void)trace_event(&trace, KIND_PYTHON, beside, callee, begin,
					  within_ms * MS);
		}
		play_others(now + 30 * MS);
		if (between_ms > 0)
			(void)trace_event(&trace, KIND_PYTHON, beside, callee, now + 40 * MS,
					  between_ms * MS);
	}
	return summarized();
}

static void who_executes_in_the_stalls_alone_holds_the_lock(void **state)
{
	struct fingerprint fp = played_beside("json/encoder.py(205): iterencode", 19, 10);

	(void)state;
	assert_int_equal(fp.stalls.cnt, STEPS / 2);
	assert_non_null(fp.host_stats.other_name);
	assert_string_equal(fp.host_stats.other_name,
			    "train.py(9): export > json/encoder.py(205): iterencode");
	assert_float_equal(fp.host_stats.other_cpu_frac, (19.0 / 2 + 10) / 200, 1e-3);
	fingerprint_done(&fp);
}

static void no_holder_is_known(const char *callee, int64_t within_ms, int64_t between_ms)
{
	struct fingerprint fp = played_beside(callee, within_ms, between_ms);

	assert_int_equal(fp.stalls.cnt, STEPS / 2);
	assert_true(fp.host_stats.other_name == NULL || fp.host_stats.other_name[0] == '\0');
	assert_true(fp.host_stats.other_cpu_frac < 0);
	fingerprint_done(&fp);
}

/* A wait that is not known as one is as long between stalls. */
static void who_waits_meanwhile_holds_nothing(void **state)
{
	no_holder_is_known("<built-in function sleep>", 19, 0);
	(void)trace_free(state);
	(void)trace_new(state);
	no_holder_is_known("<built-in method next_event of grpc object>", 19, 155);
	(void)trace_free(state);
	(void)trace_new(state);
	no_holder_is_known("json/encoder.py(205): iterencode", 8, 0);
}

static void nothing_is_known_of_few_iterations_or_samples(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, STEP_NS);
	event(KIND_OPERATOR, "aten::add", 0, 10 * MS);
	event(KIND_ANNOTATION, "ProfilerStep#2", STEP_NS, 2 * STEP_NS);
	fp = summarized();
	assert_false(fp.stalls.known);
	fingerprint_done(&fp);
	(void)trace_free(NULL);
	(void)trace_new(NULL);
	trace.meta.sampled = true;
	fp = played(KIND_OPERATOR);
	assert_int_equal(fp.iteration_cnt, STEPS);
	assert_false(fp.stalls.known);
	fingerprint_done(&fp);
}

static void without_memory_nothing_is_left_behind(void **state)
{
	struct fingerprint fp;
	int error = -ENOMEM;

	(void)state;
	lengths_ns[2][0] = 8 * MS;
	play(KIND_OPERATOR);
	for (int n = 0; error == -ENOMEM; n++) {
		struct err err;

		allocations_left = n;
		error = summarize(&trace, NULL, &fp, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_int_equal(fp.stalls.cnt, 1);
	fingerprint_done(&fp);
}

#define STALL_TEST(f) cmocka_unit_test_setup_teardown(f, lengths_new, trace_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STALL_TEST(short_operators_that_take_milliseconds_once_stall),
		STALL_TEST(what_is_long_in_each_iteration_does_not_stall),
		STALL_TEST(an_iteration_in_which_much_is_long_has_no_stalls),
		STALL_TEST(functions_that_usually_are_long_do_not_stall),
		STALL_TEST(python_stalls_are_not_inside_operators),
		STALL_TEST(collections_and_waits_are_no_stalls),
		STALL_TEST(what_device_work_hides_is_no_stall),
		STALL_TEST(lengths_of_waits_for_the_interpreter_are_counted),
		STALL_TEST(who_executes_in_the_stalls_alone_holds_the_lock),
		STALL_TEST(who_waits_meanwhile_holds_nothing),
		STALL_TEST(nothing_is_known_of_few_iterations_or_samples),
		STALL_TEST(without_memory_nothing_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
