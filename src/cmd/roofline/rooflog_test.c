/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/rooflog.h"

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

static const char whole[] = "perftracker-roofline 1\n"
			    "rank 3 8 4711 1795844252661537257 node7\n"
			    "loader 4 8 625\n"
			    "plan 13 8 15 10\n"
			    "kept 8 66048 1\n"
			    "block real 21 15 633898725 314407393 30840 0\n"
			    "block repeated 44 15 365201848 0 30840 2\n"
			    "done\n";

static int parse(const char *text, struct rooflog *ret, struct err *err)
{
	return rooflog_parse("a.roofline", text, strlen(text), ret, err);
}

static void rooflog_reads_all_lines_of_a_process(void **state)
{
	struct rooflog log;
	struct err err;

	(void)state;
	assert_int_equal(parse(whole, &log, &err), 0);
	assert_int_equal(log.rank, 3);
	assert_int_equal(log.world, 8);
	assert_int_equal(log.pid, 4711);
	assert_string_equal(log.host, "node7");
	assert_int_equal(log.workers, 4);
	assert_int_equal(log.length, 625);
	assert_int_equal(log.skip, 8);
	assert_true(log.copies);
	assert_true(log.done);
	assert_int_equal(log.blocks.cnt, 2);
	assert_false(log.blocks.data[0].repeated);
	assert_int_equal(log.blocks.data[0].wait_ns, 314407393);
	assert_true(log.blocks.data[1].repeated);
	assert_int_equal(log.blocks.data[1].epochs, 2);
	rooflog_done(&log);
}

static void rooflog_leaves_out_a_line_that_was_not_finished(void **state)
{
	struct err err;

	(void)state;
	for (size_t len = strlen("perftracker-roofline 1\n"); len <= strlen(whole); len++) {
		struct rooflog log;

		assert_int_equal(rooflog_parse("a", whole, len, &log, &err), 0);
		assert_int_equal(log.done, len == strlen(whole));
		rooflog_done(&log);
	}
}

static void rooflog_says_where_a_wrong_line_is(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "", "a.roofline: offset 0: expected perftracker-roofline 1, found no line" },
		{ "other 1\n", "a.roofline: offset 0: expected perftracker-roofline 1, found "
			       "\"other 1\"" },
		{ "perftracker-roofline 1\nrank 1 2\n",
		  "a.roofline: offset 23: expected the numbers of its first word, found \"rank 1 "
		  "2\"" },
		{ "perftracker-roofline 1\nwhat\n", "a.roofline: offset 23: expected a word of a "
						    "roofline file, found \"what\"" },
	};
	static const char *const wrong[] = {
		"block real 21 0 5 5 5 0",
		"block real 21 15 5 5 5",
		"block unreal 21 15 5 5 5 0",
		"block real 21 15 5 5 5 0 7",
		"block real 21 15 -1 5 5 0",
		"block real 1e3 15 5 5 5 0",
		"plan 1 2 3 99999999999999999999",
		"loader -1 0 5",
		"kept 1 1 2",
		"block repeated",
	};
	struct rooflog log = { .rank = 77 };
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(cases[i].text, &log, &err), -EINVAL);
		assert_string_equal(err.text, cases[i].said);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "perftracker-roofline 1\n%s\n", wrong[i]);
		assert_int_equal(parse(text, &log, &err), -EINVAL);
	}
	assert_int_equal(log.rank, 77); /* untouched */
}

static void rooflog_survives_each_failed_allocation(void **state)
{
	struct rooflog log;
	struct err err;
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = parse(whole, &log, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	rooflog_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rooflog_reads_all_lines_of_a_process),
		cmocka_unit_test(rooflog_leaves_out_a_line_that_was_not_finished),
		cmocka_unit_test(rooflog_says_where_a_wrong_line_is),
		cmocka_unit_test(rooflog_survives_each_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
