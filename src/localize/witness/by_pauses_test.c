/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses at random workers and functions: which ranks are named, which pauses do not count. */
#include "localize/test_fixture.h"

#include <string.h>

#define WORKERS 6
#define ITERATIONS 10

static const struct test_place enters = { "forward", KIND_PYTHON, "grad_mode.py: __init__",
					  CLASS_HOST };
static const struct test_place views = { "backward", KIND_PYTHON, "_flat_param.py: get_views",
					 CLASS_HOST };
static const struct test_place grads = { "optimizer", KIND_PYTHON, "optimizer.py: _use_grad",
					 CLASS_HOST };

struct strike {
	int iteration;
	size_t worker;
	const struct test_place *place;
	double ms;
};

static void play(const struct strike *strikes, size_t cnt)
{
	test_job_init(&job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(&job, w, &test_mm, 95);
		for (size_t k = 0; k < cnt; k++) {
			if (strikes[k].iteration == i || strikes[k].iteration < 0)
				test_work(&job, strikes[k].worker, strikes[k].place, strikes[k].ms);
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
}

#define PLAY(...)                                                    \
	do {                                                         \
		static const struct strike list[] = { __VA_ARGS__ }; \
		play(list, ARRAY_SIZE(list));                        \
		report = test_localize(&job, NULL);                  \
	} while (0)

/* The fourth was never last, and paused too. */
static void pauses_in_unrelated_functions_are_one_finding(void **state)
{
	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 3, 2, &views, 30 }, { 6, 3, &grads, 30 },
	     { 3, 5, &enters, 25 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "0,2-3,5");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 9, 0.1);
}

static void two_functions_are_enough_when_none_pauses_always(void **state)
{
	(void)state;
	PLAY({ 1, 1, &enters, 30 }, { 8, 4, &grads, 30 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "1,4");
}

/* Of two pauses the longer one has most of the loss: only a place that is long again and again is slow. */
static void one_long_pause_is_no_slow_place(void **state)
{
	(void)state;
	PLAY({ 1, 1, &enters, 40 }, { 8, 4, &grads, 15 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "1,4");
	(void)done(NULL);
	PLAY({ 1, 1, &enters, 40 }, { 4, 1, &enters, 40 }, { 6, 1, &enters, 40 },
	     { 8, 4, &grads, 15 });
	assert_true(report.finding_cnt > 0);
	assert_string_not_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "1");
}

/* In a long window each worker has paused everywhere. */
static void workers_that_pause_at_each_place_once_are_one_finding(void **state)
{
	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 3, 2, &views, 30 }, { 5, 0, &views, 30 },
	     { 7, 2, &enters, 30 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "0,2");
}

/* Only one of them can be last at the only collective of an iteration. */
static void pauses_of_one_length_on_half_of_the_workers_are_one_finding(void **state)
{
	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 1, 2, &views, 29 }, { 1, 3, &grads, 29.5 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	test_assert_ranks(&report.findings[0], "0,2-3");
}

/* All pause in one function, each in iterations of its own: no function that is slow, and no checkpoint. */
static void pauses_of_all_by_turns_in_one_function_are_one_finding(void **state)
{
	(void)state;
	for (int turns = 0; turns < 2; turns++) {
		struct strike strikes[3 * WORKERS];

		for (size_t k = 0; k < ARRAY_SIZE(strikes); k++)
			strikes[k] = (struct strike){ turns != 0 ? (int)(k * 3 % ITERATIONS) : 4,
						      k % WORKERS, &enters, 30 };
		play(strikes, turns != 0 ? ARRAY_SIZE(strikes) : WORKERS);
		report = test_localize(&job, NULL);
		assert_int_equal(report.finding_cnt, turns);
		if (turns != 0) {
			assert_true(report.findings[0].all_workers);
			assert_non_null(strstr(report.findings[0].title, "taking turns"));
			assert_string_not_equal(report.findings[0].cause,
						"slow-function-everywhere");
		}
		(void)done(NULL);
	}
}

/* Without stacks it shows between operators, and what it is does not show. */
static void pauses_between_operators_are_one_finding_without_a_cause(void **state)
{
	static const struct test_place gelu = { NULL, KIND_OTHER,
						"idle after aten::mm, before aten::gelu",
						CLASS_IDLE };
	static const struct test_place norm = { NULL, KIND_OTHER, "idle after aten::gelu",
						CLASS_IDLE };

	(void)state;
	PLAY({ 1, 0, &gelu, 30 }, { 3, 2, &norm, 30 }, { 6, 3, &gelu, 30 }, { 8, 1, &norm, 30 });
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "host-stall");
	test_assert_ranks(&report.findings[0], "0-3");
	assert_string_equal(
		report.findings[0].title,
		"ranks 0-3, taking turns: host stall in 2 unrelated places between operators");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 12, 0.1);
}

/* Who is slow for a reason of its own stays a finding of its own. */
static void a_worker_that_is_always_slow_is_not_joined(void **state)
{
	const struct finding *slow;

	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 3, 2, &views, 30 }, { 6, 3, &grads, 30 },
	     { -1, 4, &test_crop, 20 });
	slow = test_find(&report, "cpu-bound-python");
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(slow, "4");
	test_assert_ranks(test_find(&report, "garbage-collection"), "0,2-3");
}

/* Pauses widen what the fast workers do of their own, but not what is left without them. */
static void many_workers_slow_in_one_place_are_reported_beside_pauses(void **state)
{
	static const struct test_place batch = { NULL, KIND_PYTHON, "socket.py: recv_into",
						 CLASS_HOST };

	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 4, 0, &enters, 30 }, { 7, 0, &enters, 30 },
	     { 3, 2, &views, 30 }, { 6, 3, &grads, 30 }, { -1, 0, &batch, 1 }, { -1, 1, &batch, 1 },
	     { -1, 2, &batch, 21 }, { -1, 3, &batch, 21 }, { -1, 4, &batch, 21 },
	     { -1, 5, &batch, 21 });
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "garbage-collection"), "0,2-3");
	test_assert_ranks(test_find(&report, "slow-data-loading"), "2-5");
}

/* The collections are accused in a function that data loading calls: it is slow for itself. */
static void a_place_slow_on_all_is_reported_beside_its_pauses(void **state)
{
	static const char loader[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
	static const struct test_place loads = { loader, KIND_OPERATOR, "aten::stack", CLASS_HOST };
	static const struct test_place collates = { loader, KIND_PYTHON, "collate.py: collate",
						    CLASS_HOST };

	(void)state;
	PLAY({ 1, 0, &collates, 40 }, { 3, 2, &views, 30 }, { 6, 3, &grads, 30 },
	     { -1, 0, &loads, 12 }, { -1, 1, &loads, 12 }, { -1, 2, &loads, 12 },
	     { -1, 3, &loads, 12 }, { -1, 4, &loads, 12 }, { -1, 5, &loads, 12 });
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "garbage-collection"), "0,2-3");
	test_assert_ranks(test_find(&report, "slow-data-loading"), "0-5");
}

static void assert_no_collection(void)
{
	assert_true(report.finding_cnt > 0);
	assert_null(test_find(&report, "garbage-collection"));
}

/* One function that is slow now and then, in all that it does. */
static void functions_that_pause_on_the_same_workers_are_no_collection(void **state)
{
	(void)state;
	PLAY({ 1, 2, &enters, 30 }, { 1, 2, &grads, 30 }, { 6, 2, &enters, 30 },
	     { 6, 2, &grads, 30 });
	assert_no_collection();
}

static void one_function_that_pauses_on_all_by_turns_is_no_collection(void **state)
{
	(void)state;
	PLAY({ 1, 0, &enters, 30 }, { 3, 2, &enters, 30 }, { 6, 3, &enters, 30 });
	assert_no_collection();
}

static void two_functions_that_are_always_slow_are_no_collection(void **state)
{
	(void)state;
	PLAY({ -1, 0, &enters, 12 }, { -1, 3, &grads, 12 });
	assert_no_collection();
}

/* The thread had no CPU: there was no garbage collection. */
static void a_thread_without_a_cpu_does_not_collect(void **state)
{
	static const struct strike list[] = { { 1, 0, &enters, 30 },
					      { 5, 0, &enters, 30 },
					      { 3, 2, &views, 30 },
					      { 7, 2, &views, 30 } };

	(void)state;
	play(list, ARRAY_SIZE(list));
	job.workers[0].fp.host_stats.run_delay_frac = 0.056;
	job.workers[2].fp.host_stats.run_delay_frac = 0.056;
	report = test_localize(&job, NULL);
	assert_no_collection();
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pauses_in_unrelated_functions_are_one_finding),
		TEST(two_functions_are_enough_when_none_pauses_always),
		TEST(one_long_pause_is_no_slow_place),
		TEST(workers_that_pause_at_each_place_once_are_one_finding),
		TEST(pauses_of_one_length_on_half_of_the_workers_are_one_finding),
		TEST(pauses_of_all_by_turns_in_one_function_are_one_finding),
		TEST(pauses_between_operators_are_one_finding_without_a_cause),
		TEST(a_worker_that_is_always_slow_is_not_joined),
		TEST(many_workers_slow_in_one_place_are_reported_beside_pauses),
		TEST(a_place_slow_on_all_is_reported_beside_its_pauses),
		TEST(functions_that_pause_on_the_same_workers_are_no_collection),
		TEST(one_function_that_pauses_on_all_by_turns_is_no_collection),
		TEST(two_functions_that_are_always_slow_are_no_collection),
		TEST(a_thread_without_a_cpu_does_not_collect),
	};

	return cmocka_run_group_tests_name("by_pauses", tests, NULL, NULL);
}
