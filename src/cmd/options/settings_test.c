/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct values {
	bool flag;
	const char *text, *config;
	int64_t gap_ns;
	unsigned int word;
};

#define FIELD(field) OPTION_FIELD(struct values, field)

static const struct option_row rows[] = {
	{ .help = "Group" },
	{ .name = "flag", FIELD(flag), .help = "a flag" },
	{ .name = "text", .argument = "TEXT", FIELD(text), .help = "a text", .preset = "none" },
	{ .name = "min-gap",
	  .argument = "SECONDS",
	  FIELD(gap_ns),
	  .unit = UNIT_SECONDS,
	  .high = 600,
	  .help = "a time",
	  .preset = "60" },
	{ .name = "word", .words = "text|json", FIELD(word), .help = "a word" },
	{ .name = "config",
	  .argument = "FILE",
	  FIELD(config),
	  .not_a_setting = true,
	  .help = "a file" },
};

static const struct command command = {
	.name = "try", .usage = "", .about = "", OPTION_ROWS(rows), .order = ORDER_BEFORE
};

/* No variable and no file of the user has a say. */
static int setup(void **state)
{
	(void)state;
	(void)unsetenv("PERFTRACKER_FLAG");
	(void)unsetenv("PERFTRACKER_TEXT");
	(void)unsetenv("PERFTRACKER_MIN_GAP");
	(void)unsetenv("PERFTRACKER_CONFIG");
	return setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

static int take(const char *text, struct values *values, struct err *err)
{
	struct settings settings = { .path = "my.conf" };
	char copy[512];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	return settings_take_file(&command, &settings, copy, values, err);
}

static void a_file_has_lines_of_names_and_values(void **state)
{
	struct values values = { .flag = true };

	(void)state;
	assert_int_equal(
		take("# mine\n\n  min-gap=30 \r\n\tword = json\nflag = off", &values, NULL), 0);
	assert_int_equal(values.gap_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(values.word, 1);
	assert_false(values.flag);
}

static void an_error_in_a_file_has_line_and_column(void **state)
{
	static const char *const cases[][2] = {
		{ "\n  min-gab = 3", "my.conf:2:3: unknown setting 'min-gab': did you mean" },
		{ "min-gap = soon", "my.conf:1:11: --min-gap 'soon': expected a number" },
		{ "word", "my.conf:1:1: expected NAME = VALUE, found 'word'" },
		{ "flag = maybe", "my.conf:1:8: --flag 'maybe': expected yes or no" },
		{ "config = x", "my.conf:1:1: unknown setting 'config'" },
		{ "=", "my.conf:1:1: unknown setting ''" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct values values = { .flag = false };
		struct err err = { "" };

		assert_int_equal(take(cases[i][0], &values, &err), -EINVAL);
		assert_ptr_equal(strstr(err.text, cases[i][1]), err.text);
	}
}

static int parse(struct settings *settings, struct values *values, int argc, const char **words)
{
	char *argv[8] = { (char *)(uintptr_t) "perftracker try" };
	int first;

	for (int i = 0; i < argc; i++)
		argv[i + 1] = (char *)(uintptr_t)words[i];
	return settings_parse(&command, argc + 1, argv, settings, values, &first);
}

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static void the_command_line_counts_more_than_environment_and_that_more_than_the_file(void **state)
{
	char path[] = "/tmp/pt-settings-XXXXXX";
	const char *words[] = { "--config", path, "--text", "line", "x" };
	struct settings settings;
	struct values values = { .flag = false };
	struct str table = { 0 };

	(void)state;
	write_file(path, "text = file\nmin-gap = 1\nflag = yes\nword = json\n");
	assert_int_equal(setenv("PERFTRACKER_TEXT", "environment", 1), 0);
	assert_int_equal(setenv("PERFTRACKER_MIN_GAP", "2", 1), 0);
	assert_int_equal(parse(&settings, &values, 5, words), OPTIONS_PARSED);
	assert_string_equal(values.text, "line");
	assert_int_equal(values.gap_ns, 2 * NSEC_PER_SEC);
	assert_true(values.flag);
	settings_describe(&command, &settings, &table);
	assert_non_null(strstr(str_borrow(&table),
			       "\ntext             line                     command line\n"));
	assert_non_null(strstr(str_borrow(&table), " PERFTRACKER_MIN_GAP\n"));
	assert_non_null(strstr(str_borrow(&table), ":4\n"));
	assert_null(strstr(str_borrow(&table), "config"));
	str_done(&table);
	settings_done(&settings);
	assert_int_equal(unlink(path), 0);
}

static void a_missing_file_is_an_error_only_if_it_was_named(void **state)
{
	const char *words[] = { "--config", "/nonexistent/run.conf" };
	struct settings settings;
	struct values values = { .flag = false };

	(void)state;
	assert_int_equal(parse(&settings, &values, 0, words), OPTIONS_PARSED);
	settings_done(&settings);
	assert_int_equal(parse(&settings, &values, 2, words), 2);
	settings_done(&settings);
	assert_int_equal(setenv("PERFTRACKER_CONFIG", "/nonexistent/run.conf", 1), 0);
	assert_int_equal(parse(&settings, &values, 0, words), 2);
	settings_done(&settings);
}

static void a_wrong_variable_is_refused(void **state)
{
	struct settings settings;
	struct values values = { .flag = false };

	(void)state;
	assert_int_equal(setenv("PERFTRACKER_FLAG", "perhaps", 1), 0);
	assert_int_equal(parse(&settings, &values, 0, NULL), 2);
	settings_done(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_file_has_lines_of_names_and_values, setup),
		cmocka_unit_test_setup(an_error_in_a_file_has_line_and_column, setup),
		cmocka_unit_test_setup(
			the_command_line_counts_more_than_environment_and_that_more_than_the_file,
			setup),
		cmocka_unit_test_setup(a_missing_file_is_an_error_only_if_it_was_named, setup),
		cmocka_unit_test_setup(a_wrong_variable_is_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
