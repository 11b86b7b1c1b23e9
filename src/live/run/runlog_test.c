/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/runlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* The line without "perftracker HH:MM:SS ". */
static const char *people(const char *pairs)
{
	const struct log_setup setup = runlog_setup(RUNLOG_AUTO, true, false);
	const struct log_event event = { .pairs = pairs };
	static char line[512];

	line[logtext_render(&setup, &event, line, sizeof(line) - 1)] = '\0';
	return line[0] == '\0' ? line : line + strlen("perftracker HH:MM:SS ");
}

static void the_format_follows_the_terminal_unless_it_is_given(void **state)
{
	(void)state;
	assert_int_equal(runlog_setup(RUNLOG_AUTO, true, true).format, LOG_PEOPLE);
	assert_int_equal(runlog_setup(RUNLOG_AUTO, false, true).format, LOG_LOGFMT);
	assert_int_equal(runlog_setup(RUNLOG_PEOPLE, false, true).format, LOG_PEOPLE);
	assert_int_equal(runlog_setup(RUNLOG_LOGFMT, true, true).format, LOG_LOGFMT);
	assert_int_equal(runlog_setup(RUNLOG_JSON, true, true).format, LOG_JSON);
}

static void people_read_the_folder_first_and_the_report_last(void **state)
{
	(void)state;
	assert_string_equal(people("event=run job=\"train\" command=\"torchrun\" dir=\"/o\""),
			    "watching job train (torchrun); results in /o\n");
	assert_string_equal(people("event=finished verdict=HEALTHY report=\"/o/report.html\""),
			    "verdict: HEALTHY. Report: /o/report.html\n");
	assert_string_equal(people("event=own-cost cost=\"0.19 % of a core per rank (exact)\""),
			    "PerfTracker's own cost: 0.19 % of a core per rank (exact)\n");
}

static void people_read_how_slow_the_job_became(void **state)
{
	(void)state;
	assert_string_equal(people("event=profile why=slowdown workers=4 first_step=662 "
				   "iterations=16 baseline_ms=9.8 now_ms=33.8"),
			    "slow: iterations of 9.8 -> 33.8 ms; profiling 4 ranks at step 662\n");
}

/* A phrase with a key that no line has would show "?" to people. */
static void no_phrase_has_an_unbalanced_brace(void **state)
{
	const struct log_setup setup = runlog_setup(RUNLOG_AUTO, true, false);

	(void)state;
	for (size_t i = 0; i < setup.phrase_cnt; i++) {
		int depth = 0;

		for (const char *at = setup.phrases[i].text; *at != '\0'; at++) {
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
			assert_in_range(depth, 0, 2);
		}
		assert_int_equal(depth, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_format_follows_the_terminal_unless_it_is_given),
		cmocka_unit_test(people_read_the_folder_first_and_the_report_last),
		cmocka_unit_test(people_read_how_slow_the_job_became),
		cmocka_unit_test(no_phrase_has_an_unbalanced_brace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
