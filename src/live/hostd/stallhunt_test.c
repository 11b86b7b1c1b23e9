/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/stallhunt.h"

#include "model/verdict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void the_time_of_training_threads_is_added(_unused_ void **state)
{
	static const char TEXT[] =
		"{\"verdict\": \"stalls\", \"window_ms\": 10000, \"threads\": ["
		"{\"tid\": 5, \"pid\": 5}, {\"tid\": 6, \"pid\": 5}, {\"tid\": 9, \"pid\": 9}],"
		"\"findings\": [{\"kind\": \"stall\", \"matters\": true, \"summary\": \"a\","
		" \"total_ms\": 2000, \"threads\": [5]},"
		"{\"kind\": \"stall\", \"matters\": true, \"summary\": \"b\","
		" \"total_ms\": 1000, \"threads\": [%s]}]}";
	struct wire_stalls stalls = { 0 };
	char text[600];

	(void)snprintf(text, sizeof(text), TEXT, "5");
	assert_int_equal(parse(text, &stalls), 0);
	assert_float_equal(stalls.stall_frac, 0.3, 1e-9);
	assert_int_equal(stalls.several, 0);
	(void)snprintf(text, sizeof(text), TEXT, "9");
	assert_int_equal(parse(text, &stalls), 0);
	assert_float_equal(stalls.stall_frac, 0.3, 1e-9);
	assert_int_equal(stalls.several, 1);
	(void)snprintf(text, sizeof(text), TEXT, "6"); /* does not train */
	assert_int_equal(parse(text, &stalls), 0);
	assert_float_equal(stalls.stall_frac, 0.2, 1e-9);
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

struct fixture {
	uv_loop_t loop;
	struct run_options options;
	struct stallhunt *hunt;
	char folder[64], program[96];
	struct wire_stalls found;
	unsigned found_cnt;
};

static void take(void *arg, const struct wire_stalls *stalls)
{
	struct fixture *fixture = arg;

	fixture->found = *stalls;
	fixture->found_cnt++;
}

/* A program that writes what it was asked, as JSON, to the file behind --output. */
static int setup(void **state)
{
	static const char SCRIPT[] =
		"#!/bin/sh\n"
		"echo '{\"verdict\": \"stalls\", \"window_ms\": 1, \"findings\": [{\"kind\": \"stall\","
		"\"matters\": true, \"summary\": \"'$1 $2 $3'\"}]}' > \"$6\"\n";
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	FILE *file;

	assert_int_equal(uv_loop_init(&fixture->loop), 0);
	(void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/stallhunt_testXXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	(void)snprintf(fixture->program, sizeof(fixture->program), "%s/program", fixture->folder);
	file = fopen(fixture->program, "w");
	assert_non_null(file);
	assert_true(fputs(SCRIPT, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(fixture->program, 0700), 0);
	fixture->options.out_dir = fixture->folder;
	fixture->options.program = fixture->program;
	fixture->hunt = stallhunt_new(&fixture->loop, &fixture->options, take, fixture);
	assert_non_null(fixture->hunt);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char path[128];

	stallhunt_close(fixture->hunt);
	assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fixture->loop), 0);
	(void)snprintf(path, sizeof(path), "%s/stalls-5.json", fixture->folder);
	(void)unlink(path);
	(void)unlink(fixture->program);
	assert_int_equal(rmdir(fixture->folder), 0);
	free(fixture);
	return 0;
}

static void a_window_gives_its_lines_and_the_next_one_has_to_wait(void **state)
{
	const uint32_t pids[] = { 11, 12 };
	struct fixture *fixture = *state;
	const int64_t now_ns = NSEC_PER_SEC;

	stallhunt_begin(fixture->hunt, 5, pids, 0, now_ns); /* no worker: nothing begins */
	stallhunt_begin(fixture->hunt, 5, pids, 2, now_ns);
	stallhunt_begin(fixture->hunt, 6, pids, 2, now_ns + 2 * STALLHUNT_GAP_NS); /* one is open */
	assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(fixture->found_cnt, 1);
	assert_int_equal(fixture->found.number, 5);
	assert_string_equal(fixture->found.lines[0], "stalls --pid=11,12 --seconds=12");
	stallhunt_begin(fixture->hunt, 7, pids, 2, now_ns + STALLHUNT_GAP_NS / 2);
	assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(fixture->found_cnt, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_reports_that_a_stall_may_explain_are_followed),
		cmocka_unit_test(stalls_that_matter_become_lines),
		cmocka_unit_test(the_time_of_training_threads_is_added),
		cmocka_unit_test(no_stall_is_a_line_too),
		cmocka_unit_test(other_bytes_are_refused),
		cmocka_unit_test_setup_teardown(
			a_window_gives_its_lines_and_the_next_one_has_to_wait, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
