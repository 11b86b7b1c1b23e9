/* SPDX-License-Identifier: Apache-2.0 */
#include "live/stallnotes/stallnotes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct finding FINDINGS[] = {
	{ .cause = "slow-link" },
	{ .cause = "host-stall", .evidence = (const char *const[]){ "first" }, .evidence_cnt = 1 },
};

static struct report make(size_t finding_cnt)
{
	struct report report = { .findings = FINDINGS, .finding_cnt = finding_cnt };

	arena_init(&report.arena);
	return report;
}

static const struct wire_stalls STALLS = {
	.number = 7, .line_cnt = 2, .found = 1, .lines = { "held by agent.py", "stopped" }
};

static const struct stallpace STEADY = { .baseline_ms = 10, .now_ms = 10.2 };

static void lines_go_to_the_finding_that_they_may_explain(_unused_ void **state)
{
	struct stallnotes notes = { 0 };
	struct report report = make(2);
	const struct finding *finding;

	stallnotes_keep(&notes, &report, 7);
	assert_int_equal(stallnotes_add(&notes, &STALLS, &STEADY), 0);
	finding = &notes.report.findings[1];
	assert_int_equal(notes.report.findings[0].evidence_cnt, 0);
	assert_int_equal(finding->evidence_cnt, 3);
	assert_string_equal(finding->evidence[0], "first");
	assert_string_equal(finding->evidence[1],
			    "stall window after this report: held by agent.py");
	assert_int_equal(FINDINGS[1].evidence_cnt, 1); /* the original is as it was */
	assert_false(finding->stalls.present);	       /* the job is not slow */
	stallnotes_drop(&notes);
}

static void the_finding_has_the_share_that_stalls_explain(_unused_ void **state)
{
	const struct stallpace slow = { .baseline_ms = 10, .now_ms = 40 };
	struct wire_stalls stalls = STALLS;

	stalls.stall_frac = 0.6;
	for (int found = 0; found < 2; found++) {
		struct stallnotes notes = { 0 };
		struct report report = make(2);
		const struct finding_explained *explained;

		stalls.found = (uint32_t)found;
		stallnotes_keep(&notes, &report, 7);
		assert_int_equal(stallnotes_add(&notes, &stalls, &slow), 0);
		explained = &notes.report.findings[1].stalls;
		assert_true(explained->present);
		assert_false(explained->at_most);
		assert_float_equal(explained->iteration_ms, 40, 1e-9);
		assert_float_equal(explained->baseline_ms, 10, 1e-9);
		assert_float_equal(explained->frac, found != 0 ? 0.8 : 0.0, 1e-9);
		assert_false(notes.report.findings[0].stalls.present);
		stallnotes_drop(&notes);
	}
}

static void without_such_a_finding_they_are_notes(_unused_ void **state)
{
	struct stallnotes notes = { 0 };
	struct report report = make(1);

	stallnotes_keep(&notes, &report, 7);
	assert_int_equal(stallnotes_add(&notes, &STALLS, &STEADY), 0);
	assert_int_equal(notes.report.note_cnt, 2);
	stallnotes_drop(&notes);
}

static void lines_of_an_older_report_are_refused(_unused_ void **state)
{
	struct stallnotes notes = { 0 };
	struct report first = make(2), second = make(2);

	assert_int_equal(stallnotes_add(&notes, &STALLS, &STEADY), -ENOENT);
	stallnotes_keep(&notes, &first, 7);
	stallnotes_keep(&notes, &second, 8);
	assert_int_equal(stallnotes_add(&notes, &STALLS, &STEADY), -ENOENT);
	stallnotes_drop(&notes);
}

/* Iterations of 40 ms instead of 10: three quarters of the time are to explain. */
static void assert_explained(struct wire_stalls stalls, const char *expected)
{
	const struct stallpace slow = { .baseline_ms = 10, .now_ms = 40 };
	struct stallnotes notes = { 0 };
	struct report report = make(1);

	stallnotes_keep(&notes, &report, 7);
	assert_int_equal(stallnotes_add(&notes, &stalls, &slow), 0);
	assert_int_equal(notes.report.note_cnt, stalls.line_cnt + 1);
	assert_string_equal(notes.report.notes[stalls.line_cnt], expected);
	stallnotes_drop(&notes);
}

#define PACE "stall window after this report: iterations take 40.0 ms, before 10.0 ms: "

static void of_a_slow_job_it_is_said_how_much_is_explained(_unused_ void **state)
{
	struct wire_stalls stalls = STALLS;

	stalls.stall_frac = 0.6;
	assert_explained(stalls, PACE "stalls explain 80 % of the difference, 20 % is not "
				      "explained");
	stalls.several = 1;
	assert_explained(stalls, PACE "stalls explain at most 80 % of the difference, at least "
				      "20 % is not explained");
	stalls.stall_frac = 5; /* of several threads at the same time */
	assert_explained(stalls, PACE "stalls explain at most 100 % of the difference, at least "
				      "0 % is not explained");
	stalls.found = 0;
	assert_explained(stalls, PACE "no stall of a training thread explains the difference");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_go_to_the_finding_that_they_may_explain),
		cmocka_unit_test(the_finding_has_the_share_that_stalls_explain),
		cmocka_unit_test(without_such_a_finding_they_are_notes),
		cmocka_unit_test(of_a_slow_job_it_is_said_how_much_is_explained),
		cmocka_unit_test(lines_of_an_older_report_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
