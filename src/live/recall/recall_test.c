/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recall/recall.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define DAY_NS (86400 * NSEC_PER_SEC)
#define NOV_20 (20412 * DAY_NS) /* 2025 */

static struct earlier earlier;
static struct pastfindings past;
static struct report report;
static struct finding finding;

static int set_up(void **state)
{
	(void)state;
	finding = (struct finding){ .cause = "host-stall", .key = "k1", .title = "a stall" };
	report = (struct report){ .verdict = VERDICT_HEALTHY, .workers_expected = 4 };
	arena_init(&report.arena);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_done(&report.arena);
	earlier_done(&earlier);
	pastfindings_done(&past);
	return 0;
}

/* A run of that day; the list is from the newest on. */
static void add_run(const char *key, int day, bool healthy, enum earlier_why why)
{
	struct earlier_run run = { .started_ns = NOV_20 + day * DAY_NS,
				   .workers = 4,
				   .why = why,
				   .healthy = healthy,
				   .abnormal = !healthy };

	(void)snprintf(run.key, sizeof(run.key), "%s", key);
	assert_int_equal(vec_push(&earlier.runs, run), 0);
}

static void add_finding(const char *job, int day, const char *key)
{
	struct pastfinding seen = { .cause = strdup("host-stall"),
				    .title = strdup("a stall"),
				    .function_key = strdup(key),
				    .number = 2,
				    .made_ns = NOV_20 + day * DAY_NS,
				    .gain_ms = 50,
				    .iteration_ms = 71 };

	(void)snprintf(seen.job, sizeof(seen.job), "%s", job);
	assert_int_equal(vec_push(&past.all, seen), 0);
}

static struct earlier_answer at(double ms)
{
	return (struct earlier_answer){ .pace = { .known = ms > 0,
						  .median_ns = (int64_t)(ms * NSEC_PER_MSEC) } };
}

static void a_finding_that_is_new_has_no_note(void **state)
{
	(void)state;
	report.findings = &finding;
	report.finding_cnt = 1;
	add_run("aaaa", 0, false, EARLIER_SICK);
	add_finding("aaaa", 0, "another");
	recall_note_returned(&report, &past, &earlier);
	assert_int_equal(report.note_cnt, 0);
}

static void a_finding_that_returns_names_the_run_without_it(void **state)
{
	static const char *const kept[] = { "kept" };

	(void)state;
	report.findings = &finding;
	report.finding_cnt = 1;
	report.notes = kept;
	report.note_cnt = 1;
	add_run("cccc", 2, true, EARLIER_FITS);
	add_run("bbbb", 1, false, EARLIER_SICK);
	add_run("aaaa", 0, false, EARLIER_SICK);
	add_finding("bbbb", 1, "k1");
	add_finding("bbbb", 1, "k1");
	add_finding("aaaa", 0, "k1");
	recall_note_returned(&report, &past, &earlier);
	assert_int_equal(report.note_cnt, 2);
	assert_string_equal(report.notes[0], "kept");
	assert_string_equal(report.notes[1],
			    "F1 was here before: in 2 earlier runs of this name, last in bbbb/2 on "
			    "2025-11-21 (50.0 ms per iteration then); it was gone in cccc on "
			    "2025-11-22 and has returned.");
}

static void gone(double ms, const char *wanted)
{
	const struct earlier_answer answer = at(ms);
	struct str closed = { 0 };

	report.note_cnt = 0;
	recall_note_gone(&report, &past, &earlier, &answer, &closed);
	assert_string_equal(str_borrow(&closed), wanted);
	assert_int_equal(report.note_cnt, wanted[0] != '\0');
	str_done(&closed);
}

static void a_finding_that_is_gone_says_what_came_back(void **state)
{
	(void)state;
	add_run("aaaa", 0, false, EARLIER_SICK);
	add_finding("aaaa", 0, "k1");
	gone(20, "a stall (host-stall), of aaaa/2 on 2025-11-20, is gone: 71.0 -> 20.0 ms an "
		 "iteration, 51.0 ms came back (50.0 were expected)");
	gone(70.5, "a stall (host-stall), of aaaa/2 on 2025-11-20, is gone: but its time did not "
		   "come back, 71.0 -> 70.5 ms an iteration");
	earlier.runs.data[0].why = EARLIER_COMMAND;
	gone(20, "a stall (host-stall), of aaaa/2 on 2025-11-20, is gone: what came back is not "
		 "known, the runs differ in command, ranks or machine");
	earlier.runs.data[0].why = EARLIER_SICK;
	report.verdict = VERDICT_INCONCLUSIVE;
	gone(20, "");
}

static void what_a_healthy_run_has_closed_is_not_closed_again(void **state)
{
	(void)state;
	add_run("bbbb", 1, true, EARLIER_FITS);
	add_run("aaaa", 0, false, EARLIER_SICK);
	add_finding("aaaa", 0, "k1");
	gone(20, "");
}

static void a_machine_that_was_accused_in_two_other_jobs_is_named(void **state)
{
	static const char *const hosts[] = { "node7", "node8" };
	struct hosttally_host host = { .name = strdup("node7"),
				       .kinds = { { .cause = "gpu-slow", .cnt = 2 } },
				       .kind_cnt = 1,
				       .last_ns = NOV_20 };
	struct hosttally tally = { .except = "" };

	(void)state;
	report.findings = &finding;
	report.finding_cnt = 1;
	finding.hosts = hosts;
	finding.host_cnt = 2;
	assert_int_equal(vec_push(&host.jobs, strdup("aaaa")), 0);
	assert_int_equal(vec_push(&host.jobs, strdup("bbbb")), 0);
	assert_int_equal(vec_push(&tally.hosts, host), 0);
	recall_note_hosts(&report, &tally); /* of the program, not of the machine */
	assert_int_equal(report.note_cnt, 0);
	finding.cause = "slow-link";
	recall_note_hosts(&report, &tally);
	assert_int_equal(report.note_cnt, 1);
	assert_string_equal(report.notes[0],
			    "Host node7 was accused in 2 other jobs (gpu-slow 2), last on "
			    "2025-11-20: `perftracker hosts` lists them.");
	hosttally_done(&tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_finding_that_is_new_has_no_note, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_finding_that_returns_names_the_run_without_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_finding_that_is_gone_says_what_came_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_healthy_run_has_closed_is_not_closed_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_machine_that_was_accused_in_two_other_jobs_is_named, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
