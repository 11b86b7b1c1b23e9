/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_report.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char document[] =
	"{\"origin\": {\"window_begin\": \"2026-11-28T19:46:59.368Z\", \"window_end\": "
	"\"2026-11-28T19:47:02Z\"}, \"findings\": [{\"id\": \"PT-103\", \"scope\": \"some\", "
	"\"ranks\": \"2,5-6\", \"function\": {\"name\": \"a.py(1): f\"}}, {\"scope\": \"all\", "
	"\"ranks\": \"0-7\"}, 7, {\"ranks\": \"x\"}]}";

static int parse(const char *word, const char *text, struct timeline_report *ret, struct err *err)
{
	return timeline_report_parse(word, text, strlen(text), ret, err);
}

static void findings_and_the_window_are_taken(void **state _unused_)
{
	struct timeline_report report;
	struct err err = { "" };

	assert_int_equal(parse("out/report-3.json", document, &report, &err), 0);
	assert_int_equal(report.number, 3);
	assert_int_equal(report.window_wall_ns[0], INT64_C(1795895219368000000));
	assert_int_equal(report.window_wall_ns[1], INT64_C(1795895222000000000));
	assert_int_equal(report.findings.cnt, 4);
	assert_string_equal(report.findings.data[0].name, "a.py(1): f");
	assert_int_equal(report.findings.data[0].rank_cnt, 3);
	assert_int_equal(report.findings.data[0].ranks[2], 6);
	assert_true(report.findings.data[1].all_ranks);
	assert_int_equal(report.findings.data[2].rank_cnt + report.findings.data[3].rank_cnt, 0);
	timeline_report_done(&report);
}

static void what_is_no_time_is_no_window(void **state _unused_)
{
	static const char *const times[] = { "null",
					     "3",
					     "\"\"",
					     "\"2026-11-28\"",
					     "\"2026-11-28T19:46:59\"",
					     "\"2026-11-28T19:46:59.5\"",
					     "\"2026-11-28T19:46:59.-5Z\"",
					     "\"2026-11-28T19:46:59.1e9Z\"",
					     "\"99999-11-28T19:46:59Z\"",
					     "\"1026-11-28T19:46:59Z\"",
					     "\"9026-11-28T19:46:59Z\"",
					     "\"2026-11-28T19:46:59ZZ\"" };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct timeline_report report;
		struct err err = { "" };
		char text[160];

		(void)snprintf(text, sizeof(text), "{\"origin\": {\"window_begin\": %s}}",
			       times[i]);
		assert_int_equal(parse("x", text, &report, &err), 0);
		assert_int_equal(report.window_wall_ns[0], 0);
		timeline_report_done(&report);
	}
}

static void the_number_of_a_window_is_in_the_name(void **state _unused_)
{
	static const struct {
		const char *word;
		unsigned number;
	} cases[] = {
		{ "report-12.json", 12 }, { "/a/b/report-1.json", 1 }, { "3fa9/2", 2 },
		{ "3fa9/end", 0 },	  { "report.json", 0 },	       { "report-2.json.gz", 0 },
		{ "report-.json", 0 },	  { "report--1.json", 0 },     { "", 0 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct timeline_report report;
		struct err err = { "" };

		assert_int_equal(parse(cases[i].word, "{}", &report, &err), 0);
		assert_int_equal(report.number, cases[i].number);
		timeline_report_done(&report);
	}
}

static void what_is_no_report_is_refused_with_its_name(void **state _unused_)
{
	static const char *const texts[] = { "", "[]", "{", "{\"a\": }", "\xff", "7" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct timeline_report report;
		struct err err = { "" };

		assert_int_equal(parse("some/file", texts[i], &report, &err), -EINVAL);
		assert_non_null(strstr(err.text, "some/file: line "));
		timeline_report_done(&report);
	}
}

static void a_failed_allocation_is_reported(void **state _unused_)
{
	int error = -ENOMEM;

	for (int n = 0; error < 0; n++) {
		struct timeline_report report;
		struct err err = { "" };

		allocations_left = n;
		error = parse("x", document, &report, &err);
		allocations_left = -1;
		assert_true(error == 0 || err.text[0] != '\0');
		timeline_report_done(&report);
		assert_true(n < 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_and_the_window_are_taken),
		cmocka_unit_test(what_is_no_time_is_no_window),
		cmocka_unit_test(the_number_of_a_window_is_in_the_name),
		cmocka_unit_test(what_is_no_report_is_refused_with_its_name),
		cmocka_unit_test(a_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
