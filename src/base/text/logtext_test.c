/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/logtext.h"

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

/* 2026-11-23 11:03:41.250 UTC, 12:03:41 in the zone of setup(). */
#define MOMENT_NS (INT64_C(1795431821) * NSEC_PER_SEC + 250 * NSEC_PER_MSEC)

static const struct log_phrase phrases[] = {
	{ "state", "state=ended", "" },
	{ "state", "state=slow", "slow[ since step {since}][: {best_ms} -> {now_ms} ms]" },
	{ "state", NULL, "{state}" },
	{ "all", NULL, "{cnt|rank|ranks} at {step}" },
	{ "gone", NULL, "rank {rank} ended: {why}" },
};

static int setup(void **state)
{
	(void)state;
	return setenv("TZ", "XYZ-1", 1);
}

static const char *render(enum log_format format, enum log_level level, const char *pairs)
{
	const struct log_setup setup = { .format = format,
					 .phrases = phrases,
					 .phrase_cnt = ARRAY_SIZE(phrases) };
	const struct log_event event = { .level = level, .wall_ns = MOMENT_NS, .pairs = pairs };
	static char line[512];

	line[logtext_render(&setup, &event, line, sizeof(line) - 1)] = '\0';
	return line;
}

static void logfmt_has_time_with_zone_and_level_in_front(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_LOGFMT, LOG_WARNING, "event=state state=slow step=4"),
			    "ts=2026-11-23T12:03:41.250+01:00 level=warning app=perftracker "
			    "event=state state=slow step=4\n");
}

static void logfmt_escapes_quotes_inside_a_value(void **state)
{
	(void)state;
	assert_non_null(strstr(render(LOG_LOGFMT, LOG_INFO, "event=gone why=\"no \"x\" here\" n=1"),
			       "event=gone why=\"no \\\"x\\\" here\" n=1\n"));
	assert_non_null(strstr(render(LOG_LOGFMT, LOG_INFO, "event=gone why=\"\""), "why=\"\"\n"));
	assert_non_null(strstr(render(LOG_LOGFMT, LOG_INFO, "event=gone why=\"a\nb\""),
			       "why=\"a\\u000ab\"\n"));
}

static void json_has_numbers_as_numbers_and_texts_as_texts(void **state)
{
	(void)state;
	assert_string_equal(
		render(LOG_JSON, LOG_ERROR,
		       "event=gone rank=-1 ms=9.80 list=1,2 why=\"\\ \"x\"\" v=1. z=007 zero=0"),
		"{\"ts\":\"2026-11-23T12:03:41.250+01:00\",\"level\":\"error\","
		"\"app\":\"perftracker\",\"event\":\"gone\",\"rank\":-1,\"ms\":9.80,"
		"\"list\":\"1,2\",\"why\":\"\\\\ \\\"x\\\"\",\"v\":\"1.\",\"z\":\"007\",\"zero\":0}\n");
}

static void people_read_the_phrase_of_the_event(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO,
				   "event=state state=slow since=650 best_ms=9.8 now_ms=33.8"),
			    "perftracker 12:03:41 slow since step 650: 9.8 -> 33.8 ms\n");
	assert_string_equal(render(LOG_PEOPLE, LOG_ERROR, "event=gone rank=2 why=\"it died\""),
			    "perftracker 12:03:41 error: rank 2 ended: it died\n");
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=state state=watching"),
			    "perftracker 12:03:41 watching\n");
}

static void a_part_whose_value_is_missing_is_omitted(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=state state=slow best_ms=9.8"),
			    "perftracker 12:03:41 slow\n");
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=gone rank=2"),
			    "perftracker 12:03:41 rank 2 ended: ?\n");
}

static void a_count_has_its_word_in_the_right_number(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=all cnt=1 step=1"),
			    "perftracker 12:03:41 1 rank at 1\n");
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=all cnt=12 step=1"),
			    "perftracker 12:03:41 12 ranks at 1\n");
}

static void an_event_with_an_empty_phrase_is_not_for_people(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=state state=ended"), "");
	assert_non_null(strstr(render(LOG_LOGFMT, LOG_INFO, "event=state state=ended"), "ended"));
}

static void an_unknown_event_is_shown_as_its_pairs(void **state)
{
	(void)state;
	assert_string_equal(render(LOG_PEOPLE, LOG_INFO, "event=new-thing bare rank=2 why=\"a b\""),
			    "perftracker 12:03:41 new-thing: bare, rank 2, why a b\n");
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
	const struct log_setup setup = { .format = LOG_LOGFMT };
	const struct log_event event = { .pairs = "event=state state=0123456789" };
	char line[512];
	size_t whole = logtext_render(&setup, &event, line, sizeof(line));

	(void)state;
	for (size_t size = 2; size <= whole; size++) {
		assert_int_equal(logtext_render(&setup, &event, line, size), size);
		assert_int_equal(line[size - 1], '\n');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logfmt_has_time_with_zone_and_level_in_front),
		cmocka_unit_test(logfmt_escapes_quotes_inside_a_value),
		cmocka_unit_test(json_has_numbers_as_numbers_and_texts_as_texts),
		cmocka_unit_test(people_read_the_phrase_of_the_event),
		cmocka_unit_test(a_part_whose_value_is_missing_is_omitted),
		cmocka_unit_test(a_count_has_its_word_in_the_right_number),
		cmocka_unit_test(an_event_with_an_empty_phrase_is_not_for_people),
		cmocka_unit_test(an_unknown_event_is_shown_as_its_pairs),
		cmocka_unit_test(a_long_line_is_cut_and_still_ends),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
