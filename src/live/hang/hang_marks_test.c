/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hang/hang.h"
#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

static struct report blocked(const struct wire_state *states, size_t cnt)
{
	struct report report;

	assert_int_equal(
		hang_report(
			&(struct hang_input){ .states = states, .cnt = cnt, .now_ns = TEST_NOW_NS },
			&report),
		0);
	return report;
}

static void make_four(struct wire_state states[static 4])
{
	for (int i = 0; i < 4; i++)
		states[i] = test_worker(i, 500, 50 * MS);
}

static void a_stopped_rank_is_accused_and_the_others_are_victims(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[2].process = 'T';
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-107");
	assert_string_equal(report.findings[0].cause, "stopped-process");
	assert_non_null(strstr(report.findings[0].advice, "kill -CONT"));
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].victim_cnt, 3);
	assert_non_null(strstr(report.findings[0].evidence[0], "stopped"));
	arena_done(&report.arena);
}

/* What waits for a stopped process has no finding of its own; what went on without one has. */
static void a_process_explains_the_waits_of_its_own_moment_only(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[1].last_mark = MARK_DATALOADER;
	states[2].process = 'T';
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	arena_done(&report.arena);

	states[2].process = 'Z'; /* ended long ago */
	states[2].step = 100;
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 2);
	assert_int_equal(report.findings[1].ranks[0], 1);
	assert_string_equal(report.findings[1].id, "PT-904");
	arena_done(&report.arena);
}

static void the_rank_that_waits_for_data_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[1].last_mark = MARK_DATALOADER;
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-904");
	assert_string_equal(report.findings[0].name, "dataloader.next");
	assert_int_equal(report.findings[0].ranks[0], 1);
	arena_done(&report.arena);
}

static void all_ranks_that_wait_for_data_are_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	for (int i = 0; i < 4; i++)
		states[i].last_mark = MARK_DATALOADER;
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_non_null(strstr(report.reason, "no loader returns a batch"));
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, "PT-904");
	assert_true(report.findings[0].all_workers);
	assert_int_equal(report.findings[0].victim_cnt, 0);
	arena_done(&report.arena);
	report = blocked(states, 1); /* a job of one rank */
	assert_string_equal(report.findings[0].id, "PT-904");
	arena_done(&report.arena);
}

static void a_rank_that_is_a_step_behind_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[3].step = 499;
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-905");
	assert_string_equal(report.findings[0].name, "between two marks of the iteration");
	assert_int_equal(report.findings[0].ranks[0], 3);
	states[3].process = 'D';
	arena_done(&report.arena);
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-903");
	assert_string_equal(report.findings[0].name, "uninterruptible wait in the kernel");
	arena_done(&report.arena);
}

static void a_rank_whose_process_ended_is_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[0].process = 'X';
	states[0].phase = PHASE_GONE;
	report = blocked(states, 4);
	assert_string_equal(report.findings[0].id, "PT-902");
	assert_string_equal(report.findings[0].name, "process ended");
	assert_string_equal(report.findings[0].cause, "process-ended");
	assert_string_equal(report.findings[0].title, "The job hangs: process ended");
	assert_non_null(strstr(report.findings[0].advice, "own output"));
	assert_int_equal(report.findings[0].ranks[0], 0);
	assert_non_null(strstr(report.findings[0].evidence[0], "without notice"));
	arena_done(&report.arena);
}

static void a_job_that_ends_differs_from_a_rank_that_ends_early(void **state)
{
	struct wire_state states[4];

	(void)state;
	make_four(states);
	assert_false(hang_job_is_ending(states, 4));
	states[2].bye = 1;
	assert_true(hang_job_is_ending(states, 4));
	states[2].step--;
	assert_false(hang_job_is_ending(states, 4));
}

static void no_rank_is_accused_when_all_are_alike(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.note_cnt, 4);
	arena_done(&report.arena);
}

static void the_one_that_is_furthest_behind_is_accused_where_all_differ(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[0].step = 502;
	states[1].step = states[3].step = 501;
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	arena_done(&report.arena);
}

static void a_majority_that_is_behind_is_not_accused(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[0].step = 501;
	report = blocked(states, 4);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

static void a_rank_whose_hook_is_off_is_neither_accused_nor_a_victim(void **state)
{
	struct wire_state states[4];
	struct report report;

	(void)state;
	make_four(states);
	states[1].step = 400;
	states[1].phase = PHASE_SILENT;
	states[2].process = 'T';
	report = blocked(states, 4);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].victim_cnt, 2);
	arena_done(&report.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_rank_is_accused_and_the_others_are_victims),
		cmocka_unit_test(a_process_explains_the_waits_of_its_own_moment_only),
		cmocka_unit_test(the_rank_that_waits_for_data_is_accused),
		cmocka_unit_test(all_ranks_that_wait_for_data_are_accused),
		cmocka_unit_test(a_rank_that_is_a_step_behind_is_accused),
		cmocka_unit_test(a_rank_whose_process_ended_is_accused),
		cmocka_unit_test(a_job_that_ends_differs_from_a_rank_that_ends_early),
		cmocka_unit_test(no_rank_is_accused_when_all_are_alike),
		cmocka_unit_test(a_majority_that_is_behind_is_not_accused),
		cmocka_unit_test(the_one_that_is_furthest_behind_is_accused_where_all_differ),
		cmocka_unit_test(a_rank_whose_hook_is_off_is_neither_accused_nor_a_victim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
