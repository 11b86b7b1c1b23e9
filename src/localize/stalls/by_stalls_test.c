/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/test_fixture.h"

#include <math.h>
#include <string.h>

#define TEST(f) cmocka_unit_test_teardown(f, done)

#define WINDOW_MS 600.0
#define ITERATIONS 6
#define NAMES 8

static const char *const hosts[] = { "a", "b" };

static int64_t ns_of_ms(double ms)
{
	return (int64_t)(ms * 1e6);
}

/* Workers without stalls, the first half of them on one host, the others on another. */
static void run_on_two_hosts(size_t workers)
{
	test_job_init(&job, workers, WINDOW_MS, ITERATIONS);
	for (size_t w = 0; w < workers; w++) {
		struct fingerprint *fp = &job.workers[w].fp;

		fp->host = hosts[2 * w >= workers];
		fp->stalls.known = true;
		fp->stalls.iteration_cnt = ITERATIONS;
		fp->stalls.iteration_ns =
			arena_calloc(&fp->arena, ITERATIONS, sizeof(*fp->stalls.iteration_ns));
		fp->stalls.names = arena_calloc(&fp->arena, NAMES, sizeof(*fp->stalls.names));
		assert_non_null(fp->stalls.iteration_ns);
		assert_non_null(fp->stalls.names);
	}
}

/* Two stalls of ms in each iteration from `first` on, in operators with name_cnt names by turns. */
static void stall(size_t w, size_t first, double ms, size_t name_cnt)
{
	static const char *const names[NAMES] = { "aten::add", "aten::mm",   "aten::view",
						  "aten::t",   "aten::mul",  "aten::div",
						  "aten::to",  "aten::copy_" };
	struct fp_stalls *stalls = &job.workers[w].fp.stalls;

	for (size_t i = 0; i < name_cnt; i++)
		stalls->names[i].name = names[i];
	for (size_t i = first; i < ITERATIONS; i++) {
		for (size_t k = 0; k < 2; k++) {
			struct fp_stall_name *name = &stalls->names[(2 * i + k) % name_cnt];

			name->cnt++;
			name->ns += ns_of_ms(ms);
			stalls->cnt++;
			stalls->inside_cnt++;
		}
		stalls->iteration_ns[i] += ns_of_ms(2 * ms);
	}
	stalls->name_cnt = name_cnt;
	stalls->median_ns = stalls->longest_ns = ns_of_ms(ms);
}

static const struct finding *found(void)
{
	report = test_localize(&job, NULL);
	return test_find(&report, "random-stalls");
}

static void the_ranks_of_a_host_that_stall_at_random_are_accused(void **state)
{
	const struct finding *f;

	(void)state;
	run_on_two_hosts(4);
	stall(0, 0, 8, NAMES);
	stall(1, 0, 4, NAMES);
	f = found();
	assert_non_null(f);
	test_assert_ranks(f, "0-1");
	assert_string_equal(f->id, "PT-117");
	assert_true(f->gain_at_most);
	/* By iteration, that of the rank that stalls longest. */
	assert_true(fabs(f->gain_ms_per_iteration - 16) < 1e-9);
	assert_int_equal(f->confidence, CONFIDENCE_MEDIUM);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
}

static void stalls_of_all_ranks_are_one_finding(void **state)
{
	const struct finding *f;

	(void)state;
	run_on_two_hosts(4);
	for (size_t w = 0; w < 4; w++)
		stall(w, 0, 8, NAMES);
	f = found();
	assert_non_null(f);
	assert_true(f->all_workers);
	assert_int_equal(report.finding_cnt, 1);
}

static void the_only_rank_is_accused_of_its_own_threads(void **state)
{
	(void)state;
	run_on_two_hosts(1);
	stall(0, 0, 8, NAMES);
	assert_non_null(found());
}

static void stalls_in_a_few_operators_have_a_place(void **state)
{
	(void)state;
	run_on_two_hosts(2);
	stall(0, 0, 8, 3);
	stall(1, 0, 8, 3);
	assert_null(found());
}

static void stalls_mostly_in_one_operator_have_a_place(void **state)
{
	(void)state;
	run_on_two_hosts(2);
	stall(0, 0, 8, NAMES);
	job.workers[0].fp.stalls.names[1].cnt += 40;
	assert_null(found());
}

static void stalls_between_operators_may_be_collections(void **state)
{
	(void)state;
	run_on_two_hosts(2);
	stall(0, 0, 8, NAMES);
	job.workers[0].fp.stalls.inside_cnt = 4;
	assert_null(found());
}

/* The first iteration fills caches: the median iteration has no stalls. */
static void stalls_of_few_iterations_are_no_finding(void **state)
{
	(void)state;
	run_on_two_hosts(2);
	stall(0, 4, 30, NAMES);
	stall(1, 4, 30, NAMES);
	assert_null(found());
}

static void short_stalls_are_no_finding(void **state)
{
	(void)state;
	run_on_two_hosts(2);
	stall(0, 0, 2, NAMES); /* 4 of 100 ms */
	assert_null(found());
}

static void where_the_scheduler_was_measured_that_decides(void **state)
{
	(void)state;
	run_on_two_hosts(1);
	stall(0, 0, 8, NAMES);
	job.workers[0].fp.host_stats.run_delay_frac = 0.01;
	assert_null(found());
}

static void lengths_of_the_switch_interval_are_waits_for_the_interpreter(void **state)
{
	const struct finding *f;

	(void)state;
	run_on_two_hosts(1);
	stall(0, 0, 5.1, NAMES);
	job.workers[0].fp.stalls.switch_cnt = 6;
	assert_null(found());
	f = test_find(&report, "gil-contention");
	assert_non_null(f);
	test_assert_ranks(f, "0");
}

/* Stalls in Python itself, of which the trace shows who executed meanwhile. */
static void another_thread_that_executes_in_them_holds_the_interpreter(void **state)
{
	const struct finding *f;

	(void)state;
	for (int known = 0; known < 2; known++) {
		struct fingerprint *fp;

		run_on_two_hosts(1);
		fp = &job.workers[0].fp;
		stall(0, 0, 8, NAMES);
		fp->stalls.inside_cnt = 0;
		fp->host_stats.other_cpu_frac = known != 0 ? 0.16 : 0.06; /* of 0.16 in stalls */
		fp->host_stats.other_name = "train.py(9): export";
		assert_null(found());
		f = test_find(&report, "gil-contention");
		assert_int_equal(f != NULL, known);
		if (f != NULL)
			assert_non_null(strstr(f->title, "train.py(9): export"));
		(void)done(NULL);
	}
}

/* As run_on_two_hosts(), of a job that ran: two stalls of ms in each iteration of each worker. */
static void stall_all(double ms)
{
	for (size_t w = 0; w < job.cnt; w++) {
		struct fp_stalls *stalls = &job.workers[w].fp.stalls;
		struct arena *arena = &job.workers[w].fp.arena;

		stalls->known = true;
		stalls->iteration_cnt = job.workers[w].fp.iteration_cnt;
		stalls->iteration_ns = arena_calloc(arena, stalls->iteration_cnt + 1,
						    sizeof(*stalls->iteration_ns));
		stalls->names = arena_calloc(arena, NAMES, sizeof(*stalls->names));
		assert_non_null(stalls->iteration_ns);
		assert_non_null(stalls->names);
		assert_int_equal(stalls->iteration_cnt, ITERATIONS);
		stall(w, 0, ms, NAMES);
	}
}

/* Who has more to do in a place is stalled there more, too: the place is named, and named first. */
/* As test_play_late(), of rank 1; the others are at the place, too. */
static void play_late_beside(const struct test_place *place, double ms, double others_ms)
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			test_work(&job, w, &test_mm, 98);
			if (w == 1 || others_ms > 0)
				test_work(&job, w, place, w == 1 ? ms : others_ms);
		}
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
}

static void who_works_longer_than_the_others_is_not_excused_by_stalls(void **state)
{
	static const struct test_place place = { NULL, KIND_PYTHON, "train.py(8): augment",
						 CLASS_HOST };

	(void)state;
	for (int works = 0; works < 2; works++) {
		struct fingerprint *fp;

		play_late_beside(&place, 40, 4.5);
		stall_all(16);
		fp = &job.workers[1].fp;
		for (size_t i = 0; i < fp->function_cnt; i++) {
			struct fp_function *f = &fp->functions[i];

			if (f->class == CLASS_HOST)
				f->stall_ns =
					works != 0 ? 2 * f->thread_ns / 3 : 19 * f->thread_ns / 20;
			else /* it stalls elsewhere as much */
				f->stall_ns = ns_of_ms(6 * 42);
		}
		assert_non_null(found());
		assert_int_equal(report.finding_cnt, 1 + (size_t)works);
		assert_string_equal(report.findings[0].cause,
				    works != 0 ? "cpu-bound-python" : "random-stalls");
		(void)done(NULL);
	}
}

/* A lock is taken at one place: there a rank has most of its stalls, and others wait for it each time. */
static void a_place_with_most_stalls_is_no_random_one(void **state)
{
	static const struct test_place place = { NULL, KIND_PYTHON, "train.py(8): read_cache",
						 CLASS_HOST };

	(void)state;
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		const struct finding *random;
		struct fingerprint *fp;

		play_late_beside(&place, 30, 4);
		stall_all(16);
		fp = &job.workers[1].fp;
		for (size_t i = 0; i < fp->function_cnt; i++) {
			struct fp_function *f = &fp->functions[i];

			f->stall_ns = f->class == CLASS_HOST ? 19 * f->thread_ns / 20 : 0;
			f->stall_ns += f->class == CLASS_COMPUTE ? elsewhere * ns_of_ms(6 * 60) : 0;
		}
		random = found();
		assert_non_null(random);
		assert_string_equal(report.findings[0].cause,
				    elsewhere != 0 ? "random-stalls" : "cpu-bound-python");
		if (elsewhere == 0) {
			test_assert_ranks(&report.findings[0], "1");
			/* The place's stalls are not among those at random: 32 ms on the others. */
			assert_true(random->gain_ms_per_iteration <= 32 + 1e-9);
		}
		(void)done(NULL);
	}
}

static void where_only_one_rank_is_again_and_again_is_a_place(void **state)
{
	static const struct test_place place = { NULL, KIND_PYTHON, "train.py(8): read_cache",
						 CLASS_HOST };

	(void)state;
	for (int others = 0; others < 2; others++) {
		struct fingerprint *fp;

		play_late_beside(&place, 30, others != 0 ? 4 : 0);
		stall_all(16);
		fp = &job.workers[1].fp;
		for (size_t i = 0; i < fp->function_cnt; i++)
			fp->functions[i].stall_ns = fp->functions[i].class == CLASS_HOST
							    ? fp->functions[i].thread_ns
							    : ns_of_ms(6 * 60);
		report = test_localize(&job, NULL);
		assert_string_equal(report.findings[0].cause,
				    others != 0 ? "random-stalls" : "cpu-bound-python");
		if (others == 0)
			test_assert_ranks(&report.findings[0], "1");
		(void)done(NULL);
	}
}

/* A function that is long because it stalls is no second fault; one that is long anyway is. */
static void what_stalls_explain_is_not_accused_again(void **state)
{
	(void)state;
	for (int stalls = 0; stalls < 2; stalls++) {
		run_on_two_hosts(1);
		test_function(&job, 0,
			      test_frame(&job, 0, FRAME_NONE, KIND_PYTHON, "train.py(8): augment"),
			      CLASS_HOST, 0.2)
			->stall_ns = stalls != 0 ? ns_of_ms(100) : ns_of_ms(10);
		stall(0, 0, 8, NAMES);
		assert_non_null(found());
		assert_int_equal(test_find(&report, "cpu-bound-python") == NULL, stalls);
		(void)done(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_ranks_of_a_host_that_stall_at_random_are_accused),
		TEST(stalls_of_all_ranks_are_one_finding),
		TEST(the_only_rank_is_accused_of_its_own_threads),
		TEST(stalls_in_a_few_operators_have_a_place),
		TEST(stalls_mostly_in_one_operator_have_a_place),
		TEST(stalls_between_operators_may_be_collections),
		TEST(stalls_of_few_iterations_are_no_finding),
		TEST(short_stalls_are_no_finding),
		TEST(where_the_scheduler_was_measured_that_decides),
		TEST(lengths_of_the_switch_interval_are_waits_for_the_interpreter),
		TEST(another_thread_that_executes_in_them_holds_the_interpreter),
		TEST(who_works_longer_than_the_others_is_not_excused_by_stalls),
		TEST(a_place_with_most_stalls_is_no_random_one),
		TEST(where_only_one_rank_is_again_and_again_is_a_place),
		TEST(what_stalls_explain_is_not_accused_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
