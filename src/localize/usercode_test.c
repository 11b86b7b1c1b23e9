/* SPDX-License-Identifier: Apache-2.0 */
/* Which function is named for a place. */
#include "localize/usercode.h"

#include "localize/test_fixture.h"

#include <string.h>

static bool is_user(const char *name)
{
	struct job_frame frame = { .kind = KIND_PYTHON, .name = name };

	return usercode_is(&frame);
}

static void functions_of_libraries_are_not_the_users(void **state)
{
	(void)state;
	assert_true(is_user("train.py(12): main"));
	assert_true(is_user("mypackage/data.py(12): load_cache"));
	assert_true(is_user("/home/u/job/train.py(1): step"));
	assert_false(is_user("torch/nn/modules/linear.py(130): forward"));
	assert_false(is_user("selectors.py(402): select"));
	assert_false(is_user("multiprocessing/connection.py(253): poll"));
	assert_false(is_user("zipfile.py(1): read"));
	assert_false(is_user("PIL/Image.py(1): open"));
	assert_false(is_user("/usr/lib/python3.11/ssl.py(1): read"));
	assert_false(is_user("/opt/site-packages/mine/a.py(1): f"));
	assert_false(is_user("<system call poll>"));
	assert_false(is_user("<frozen importlib._bootstrap>(1): _load"));
	assert_true(is_user("torchlike.py(1): f"));
	assert_false(is_user("dataloader"));
}

/* Frames of a path, each the caller of the next; names are distinct. */
static uint32_t around(const char *const *path, size_t cnt, size_t loops)
{
	struct job_frame frames[8];

	for (size_t i = 0; i < cnt; i++)
		frames[i] = (struct job_frame){ .parent = i == 0 ? FRAME_NONE : (uint32_t)i - 1,
						.kind = KIND_PYTHON,
						.name = path[i],
						.trains = i < loops };
	return usercode_around(frames, (uint32_t)cnt - 1);
}

static void the_innermost_function_of_the_user_is_named(void **state)
{
	static const char *const path[] = { "a.py(1): <module>",	  "a.py(9): main",
					    "data.py(3): batch",	  "data.py(9): load_cache",
					    "json/decoder.py(3): decode", "<built-in scan>" };

	(void)state;
	assert_int_equal(around(path, 6, 2), 3);
}

static void below_the_loop_the_outermost_library_function_is_named(void **state)
{
	static const char *const path[] = { "a.py(1): <module>", "a.py(9): main",
					    "torch/utils/data/dataloader.py(720): __next__",
					    "selectors.py(402): select", "<system call poll>" };

	(void)state;
	assert_int_equal(around(path, 5, 2), 2);
	assert_int_equal(around(path, 4, 2), 3); /* a library's function has a name of its own */
}

static void a_call_of_the_loop_itself_keeps_its_name(void **state)
{
	static const char *const path[] = { "a.py(1): <module>", "a.py(9): main",
					    "<system call clock_nanosleep>" };

	(void)state;
	assert_int_equal(around(path, 3, 2), 2);
}

/* One rank writes a journal: half of it is fsync, half is urandom. */
static void a_function_in_two_system_calls_is_named_by_the_users_function(void **state)
{
	static const char *const leaves[] = { "<system call fsync>", "<system call getrandom>" };

	(void)state;
	test_job_init(&job, 4, 1000, 10);
	for (size_t w = 0; w < 4; w++) {
		uint32_t main = test_frame(&job, w, FRAME_NONE, KIND_PYTHON, "a.py(9): main");
		uint32_t mm = test_frame(&job, w, main, KIND_KERNEL, "mm");

		(void)test_function(&job, w, mm, CLASS_COMPUTE, w == 1 ? 0.8 : 0.96);
		for (size_t i = 0; i < 2 && w == 1; i++) {
			uint32_t journal =
				test_frame(&job, w, main, KIND_PYTHON, "a.py(3): write_journal");

			(void)test_function(&job, w,
					    test_frame(&job, w, journal, KIND_PYTHON, leaves[i]),
					    CLASS_HOST, i == 0 ? 0.14 : 0.03);
		}
	}
	report = test_localize(&job, NULL);
	assert_true(report.finding_cnt > 0);
	assert_string_equal(report.findings[0].name, "a.py(3): write_journal");
	test_assert_ranks(&report.findings[0], "1");
}

/* Four ranks; rank 1 also has 30 % of the window below the last of the calls from its loop. */
static void play_extra(const char *const *calls, size_t cnt, enum event_kind leaf,
		       enum event_class class, double run_delay_frac)
{
	test_job_init(&job, 4, 1000, 10);
	for (size_t w = 0; w < 4; w++) {
		uint32_t main = test_frame(&job, w, FRAME_NONE, KIND_PYTHON, "a.py(9): main");
		uint32_t at = test_frame(&job, w, main, KIND_KERNEL, "addmm");

		(void)test_function(&job, w, at, CLASS_COMPUTE, w == 1 ? 0.65 : 0.95);
		at = main;
		job.workers[w].fp.has_device = false;
		job.workers[w].fp.host_stats.run_delay_frac = run_delay_frac;
		for (size_t i = 0; i < cnt && w == 1; i++)
			at = test_frame(&job, w, at, i == cnt - 1 ? leaf : KIND_PYTHON, calls[i]);
		if (w == 1)
			(void)test_function(&job, w, at, class, 0.3);
	}
	report = test_localize(&job, NULL);
	assert_true(report.finding_cnt > 0);
	test_assert_ranks(&report.findings[0], "1");
}

static void what_only_one_rank_computes_is_its_callers_extra_work(void **state)
{
	static const char *const calls[] = { "mishap.py(93): whiten", "aten::mm" };

	(void)state;
	play_extra(calls, 2, KIND_OPERATOR, CLASS_COMPUTE, 0);
	assert_string_equal(report.findings[0].name, "mishap.py(93): whiten");
	assert_string_equal(report.findings[0].cause, "extra-work");
}

static void a_thread_in_a_system_call_stands_still(void **state)
{
	static const char *const calls[] = { "mishap.py(34): query", "<system call pselect6>" };

	(void)state;
	play_extra(calls, 2, KIND_PYTHON, CLASS_HOST, 0);
	assert_string_equal(report.findings[0].name, "mishap.py(34): query");
	assert_string_equal(report.findings[0].cause, "host-stall");
}

/* On a host with too few CPUs for all ranks. */
static void a_thread_that_sleeps_lacks_no_cpu_there(void **state)
{
	static const char *const calls[] = { "mishap.py(34): query",
					     "<system call clock_nanosleep>" };

	(void)state;
	play_extra(calls, 2, KIND_PYTHON, CLASS_HOST, 0.6);
	assert_string_equal(report.findings[0].name, "mishap.py(34): query");
	assert_string_equal(report.findings[0].cause, "host-stall");
}

/* A torn stack shows a backward pass of 0.2 % below the user's function. */
static void a_torn_stack_makes_no_training_loop(void **state)
{
	uint32_t main, cache, frame;

	(void)state;
	test_job_init(&job, 1, 1000, 10);
	main = test_frame(&job, 0, FRAME_NONE, KIND_PYTHON, "a.py(9): main");
	cache = test_frame(&job, 0, main, KIND_PYTHON, "a.py(3): load_cache");
	frame = test_frame(&job, 0, main, KIND_PYTHON, "torch/_tensor.py(5): backward");
	(void)test_function(&job, 0, frame, CLASS_HOST, 0.3);
	frame = test_frame(&job, 0, cache, KIND_PYTHON, "torch/_tensor.py(5): backward");
	(void)test_function(&job, 0, frame, CLASS_HOST, 0.002);
	frame = test_frame(&job, 0, cache, KIND_PYTHON, "<system call read>");
	(void)test_function(&job, 0, frame, CLASS_HOST, 0.69);
	report = test_localize(&job, NULL);
	assert_true(report.finding_cnt > 0);
	assert_string_equal(report.findings[0].name, "a.py(3): load_cache");
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(functions_of_libraries_are_not_the_users),
		TEST(the_innermost_function_of_the_user_is_named),
		TEST(below_the_loop_the_outermost_library_function_is_named),
		TEST(a_call_of_the_loop_itself_keeps_its_name),
		TEST(a_torn_stack_makes_no_training_loop),
		TEST(a_function_in_two_system_calls_is_named_by_the_users_function),
		TEST(what_only_one_rank_computes_is_its_callers_extra_work),
		TEST(a_thread_in_a_system_call_stands_still),
		TEST(a_thread_that_sleeps_lacks_no_cpu_there),
	};

	return cmocka_run_group_tests_name("usercode", tests, NULL, NULL);
}
