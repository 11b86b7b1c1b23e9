/* SPDX-License-Identifier: Apache-2.0 */
/* What those present waited for an absent rank, through localize(). */
#include "localize/late/absentee.h"

#include "localize/test_job.h"

#include <string.h>

static struct test_job job;
static struct report report;

static int done(void **state)
{
	(void)state;
	report_done(&report);
	test_job_done(&job);
	return 0;
}

/*
 * Four ranks; rank 3 works so much more before the second of two meetings, in all iterations, and
 * rank 1 before the first.
 */
static void play_two(double late_ms, double first_ms)
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, w == 1 ? 45 + first_ms : 45);
		test_meet(&job, 0, 0, 4, 2);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, w == 3 ? 45 + late_ms : 45);
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
}

static void play(double late_ms)
{
	play_two(late_ms, 0);
}

/* The report of the first cnt ranks of a job of world_size. */
static void localize_first(size_t cnt, int world_size)
{
	size_t all = job.cnt;

	for (size_t w = 0; w < all; w++)
		job.workers[w].fp.world_size = world_size;
	job.cnt = cnt;
	report = test_localize(&job, NULL);
	job.cnt = all;
}

static void waiting_for_an_absent_rank_is_told_in_ms(void **state)
{
	(void)state;
	play(20);
	localize_first(3, 4);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_non_null(strstr(report.reason, "those present wait up to 20 ms an iteration"));
}

static bool says_so(void)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strstr(report.notes[i], "for ranks whose traces are missing") != NULL)
			return true;
	}
	return false;
}

static void a_finding_does_not_hide_the_waiting_for_an_absent_rank(void **state)
{
	(void)state;
	play_two(20, 15);
	localize_first(3, 4);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "1");
	assert_true(says_so());
	assert_int_equal(done(state), 0);
	play_two(0, 15);
	localize_first(3, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_false(says_so());
}

static void without_waiting_no_fault_shows(void **state)
{
	(void)state;
	play(0);
	localize_first(3, 4);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_non_null(strstr(report.reason, "no fault shows in those present"));
}

/* The ranks were left out on purpose: nothing is missing, but the waiting is seen. */
static void ranks_left_out_by_choice_do_not_make_a_slow_job_healthy(void **state)
{
	static const int chosen[] = { 0, 1, 2 };
	struct localize_options options = localize_defaults();

	(void)state;
	options.ranks_expected = chosen;
	options.rank_expected_cnt = ARRAY_SIZE(chosen);
	play(20);
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.world_size = 4;
	job.cnt = 3;
	report = test_localize(&job, &options);
	job.cnt = 4;
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_non_null(strstr(report.reason, "1 of 4 ranks were not analyzed"));
	assert_non_null(strstr(report.reason, "wait up to 20 ms"));
}

static void a_group_shows_how_many_ranks_there_are(void **state)
{
	(void)state;
	play(20);
	for (size_t w = 0; w < 4; w++) {
		vec_foreach(c, &job.workers[w].collectives)
			c->group_size = 4;
	}
	localize_first(3, -1);
	assert_int_equal(report.missing_cnt, 1);
	assert_int_equal(report.missing[0], 3);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waiting_for_an_absent_rank_is_told_in_ms),
		TEST(a_finding_does_not_hide_the_waiting_for_an_absent_rank),
		TEST(without_waiting_no_fault_shows),
		TEST(ranks_left_out_by_choice_do_not_make_a_slow_job_healthy),
		TEST(a_group_shows_how_many_ranks_there_are),
	};

	return cmocka_run_group_tests_name("absentee", tests, NULL, NULL);
}
