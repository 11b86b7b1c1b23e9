/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/stallhunt.h"

#include "model/verdict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static bool wants(enum verdict verdict, const char *cause)
{
	struct wire_report report = { .verdict = verdict, .finding_cnt = cause != NULL };

	(void)snprintf(report.findings[0].cause, sizeof(report.findings[0].cause), "%s",
		       cause != NULL ? cause : "");
	return stallhunt_wants(&report);
}

static void only_reports_that_a_stall_may_explain_are_followed(_unused_ void **state)
{
	assert_true(wants(VERDICT_ABNORMAL, "host-stall"));
	assert_true(wants(VERDICT_SLOW, NULL));
	assert_false(wants(VERDICT_ABNORMAL, "slow-link"));
	assert_false(wants(VERDICT_HEALTHY, NULL));
	assert_false(wants(VERDICT_INCONCLUSIVE, "host-stall"));
}

static int parse(const char *text, struct wire_stalls *ret)
{
	return stallhunt_parse(text, strlen(text), ret);
}

static void stalls_that_matter_become_lines(_unused_ void **state)
{
	struct wire_stalls stalls = { .number = 3 };

	assert_int_equal(parse("{\"verdict\": \"stalls\", \"window_ms\": 12000, \"findings\": ["
			       "{\"kind\": \"stall\", \"matters\": true, \"summary\": \"a\\nb\"},"
			       "{\"kind\": \"kernel\", \"matters\": true, \"summary\": \"no\"},"
			       "{\"kind\": \"stall\", \"matters\": false, \"summary\": \"no\"},"
			       "{\"kind\": \"stall\", \"matters\": true, \"summary\": 5},"
			       "{\"kind\": \"stall\", \"matters\": true, \"summary\": \"c\"}]}",
			       &stalls),
			 0);
	assert_int_equal(stalls.line_cnt, 2);
	assert_int_equal(stalls.found, 1);
	assert_string_equal(stalls.lines[0], "a?b");
	assert_string_equal(stalls.lines[1], "c");
}

static void no_stall_is_a_line_too(_unused_ void **state)
{
	struct wire_stalls stalls = { 0 };

	assert_int_equal(parse("{\"verdict\": \"inconclusive\", \"window_ms\": 12000, "
			       "\"findings\": []}",
			       &stalls),
			 0);
	assert_int_equal(stalls.found, 0);
	assert_string_equal(stalls.lines[0],
			    "no stall was seen in 12 s, but not all could be seen");
}

static void other_bytes_are_refused(_unused_ void **state)
{
	static const char *const TEXTS[] = {
		"", "[]", "{", "{\"findings\": 3}", "{\"findings\": []}", "null"
	};
	struct wire_stalls stalls = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++)
		assert_int_equal(parse(TEXTS[i], &stalls), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_reports_that_a_stall_may_explain_are_followed),
		cmocka_unit_test(stalls_that_matter_become_lines),
		cmocka_unit_test(no_stall_is_a_line_too),
		cmocka_unit_test(other_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
