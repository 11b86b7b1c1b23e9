/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/optiontable.h"

#include "cmd/cmd.h"
#include "cmd/options/optiondocs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct values {
	bool flag;
	const char *text;
	double fraction;
	int64_t time_ns, rank;
	int small;
	unsigned int word;
	uint64_t big;
};

#define FIELD(field) OPTION_FIELD(struct values, field)

static const struct option_row rows[] = {
	{ .help = "First group" },
	{ .name = "flag", FIELD(flag), .help = "a flag" },
	{ .name = "text",
	  .letter = 't',
	  .argument = "FILE",
	  FIELD(text),
	  .help = "a `text` or --flag",
	  .preset = "none",
	  .more = "First sentence. Second one." },
	{ .name = "part",
	  .argument = "PERCENT",
	  FIELD(fraction),
	  .unit = UNIT_PERCENT,
	  .high = 100,
	  .help = "a part" },
	{ .name = "time",
	  .argument = "SECONDS",
	  FIELD(time_ns),
	  .unit = UNIT_SECONDS,
	  .high = 600,
	  .help = "a time" },
	{ .name = "rank",
	  .argument = "N",
	  FIELD(rank),
	  .high = 9,
	  .expected = "a rank",
	  .help = "a rank" },
	{ .help = "Second group" },
	{ .name = "small",
	  .argument = "N",
	  FIELD(small),
	  .low = 1,
	  .high = 64,
	  .help = "a number" },
	{ .name = "word", .words = "text|json|html", FIELD(word), .help = "a word" },
	{ .name = "big", .argument = "N", FIELD(big), .help = "a number" },
	{ .name = "place", .words = "own|none|DIR", FIELD(text), .help = "a place" },
};

static const struct command command = {
	.name = "try",
	.summary = "tries it",
	.usage = "[OPTION]... WORD\n",
	.about = "One paragraph.\nAnother one.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker try --flag\n",
};

static int parse(struct values *ret, int *ret_first, int argc, const char **words)
{
	char *argv[8] = { (char *)(uintptr_t) "perftracker try" };

	for (int i = 0; i < argc; i++)
		argv[i + 1] = (char *)(uintptr_t)words[i];
	return optiontable_parse(&command, argc + 1, argv, ret, ret_first);
}

static void values_reach_the_fields_of_their_rows(void **state)
{
	const char *words[] = { "--flag", "-t", "x", "--part=5", "more", "--time", "0.5" };
	struct values v = { 0 };
	int first = 0;

	(void)state;
	assert_int_equal(parse(&v, &first, 7, words), OPTIONS_PARSED);
	assert_true(v.flag);
	assert_string_equal(v.text, "x");
	assert_true(v.fraction == 0.05);
	assert_int_equal(v.time_ns, NSEC_PER_SEC / 2);
	assert_int_equal(first, 7);
}

static const struct option_row *row_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].name != NULL && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

static void numbers_and_words_are_stored_in_the_width_of_their_field(void **state)
{
	struct values v = { .rank = -1, .small = -1, .word = 7, .big = 7 };

	(void)state;
	assert_int_equal(optiontable_set(row_of("rank"), "3", &v, NULL), 0);
	assert_int_equal(optiontable_set(row_of("small"), "64", &v, NULL), 0);
	assert_int_equal(optiontable_set(row_of("word"), "html", &v, NULL), 0);
	assert_int_equal(optiontable_set(row_of("big"), "9007199254740993", &v, NULL), 0);
	assert_int_equal(v.rank, 3);
	assert_int_equal(v.small, 64);
	assert_int_equal(v.word, 2);
	assert_int_equal(v.big, 9007199254740993);
}

static void wrong_options_are_refused(void **state)
{
	static const char *const cases[] = { "--flga", "--flag=1", "-x", "--text", "--t" };
	struct values v = { 0 };
	int first = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(parse(&v, &first, 1, (const char *[]){ cases[i] }), EXIT_USAGE);
	assert_int_equal(parse(&v, &first, 1, (const char *[]){ "--version" }), EXIT_DONE);
	assert_false(v.flag);
}

static void an_unambiguous_beginning_of_an_option_is_enough(void **state)
{
	struct values v = { 0 };
	int first = 0;

	(void)state;
	assert_int_equal(parse(&v, &first, 2, (const char *[]){ "--sma", "3" }), OPTIONS_PARSED);
	assert_int_equal(v.small, 3);
}

static void a_complaint_names_option_value_and_expectation(void **state)
{
	static const struct {
		const char *name, *text, *complaint;
	} cases[] = {
		{ "small", "0", "--small '0': expected a number in 1..64" },
		{ "small", "1.5", "--small '1.5': expected a number in 1..64" },
		{ "part", "nan", "--part 'nan': expected a number in 0..100" },
		{ "rank", "10", "--rank '10': expected a rank" },
		{ "word", "js", "--word 'js': expected text, json or html" },
		{ "big", "-1", "--big '-1': expected a number" },
		{ "time", "", "--time '': expected a number in 0..600" },
	};
	struct values v = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct option_row *row = row_of(cases[i].name);
		struct err err = { "" };

		assert_int_equal(optiontable_set(row, cases[i].text, &v, &err), -EINVAL);
		assert_string_equal(err.text, cases[i].complaint);
	}
}

static void an_option_is_no_value_of_another(void **state)
{
	const char *words[] = { "--text", "--", "python" };
	struct values v = { 0 };
	int first;

	(void)state;
	assert_int_equal(parse(&v, &first, 3, words), EXIT_USAGE);
}

static void help_has_groups_defaults_and_wrapped_text(void **state)
{
	struct str out = { 0 };

	(void)state;
	optiondocs_append_help(&command, &out);
	assert_non_null(strstr(out.data,
			       "Usage: perftracker try [OPTION]... WORD\n\nOne paragraph.\n"
			       "\nAnother one.\n\nFirst group:\n"));
	assert_non_null(strstr(out.data, "  -t, --text FILE         a 'text' or --flag [none]\n"));
	assert_non_null(
		strstr(out.data, "      --word text|json|html\n                          a word"));
	assert_null(strstr(out.data, "First sentence"));
	str_done(&out);
}

static void the_man_page_has_every_option_and_its_details(void **state)
{
	struct str out = { 0 };

	(void)state;
	optiondocs_man(&command, &out);
	assert_non_null(strstr(out.data, ".Ss Second group\n.Bl -tag -width Ds\n"));
	assert_non_null(strstr(out.data, ".It Fl t , Fl \\-text Ar \\&FILE\n"
					 "A \\fBtext\\fP or \\fB\\-\\-flag\\fP.\nDefault: none.\n"
					 "First sentence.\nSecond one.\n"));
	assert_non_null(strstr(out.data, ".It Fl \\-word Cm text | Cm json | Cm html\n"));
	str_done(&out);
}

static void completions_know_words_files_and_folders(void **state)
{
	const struct command *const commands[] = { &command };
	struct str bash = { 0 }, zsh = { 0 }, fish = { 0 };

	(void)state;
	optiondocs_bash(commands, 1, &bash);
	optiondocs_zsh(commands, 1, &zsh);
	optiondocs_fish(commands, 1, &fish);
	assert_non_null(strstr(bash.data, "'try --word') _perftracker_words 'text json html' ;;"));
	assert_non_null(strstr(bash.data, "'try --text' | 'try -t') _perftracker_paths -f ;;"));
	assert_non_null(strstr(bash.data, "'try --place') _perftracker_words 'own none'; "
					  "_perftracker_paths -d ;;"));
	assert_non_null(strstr(zsh.data, "'--word=[a word]:value:(text json html)'"));
	assert_non_null(strstr(zsh.data, "--text=}'[a text or --flag]:value:_files'"));
	assert_non_null(strstr(
		zsh.data, "'--place=[a place]:value: _alternative \"words\\:word\\:(own none)\" "
			  "\"folders\\:folder\\:_files -/\"'"));
	assert_non_null(strstr(fish.data, "-l text -s t -r -F -d 'a text or --flag'"));
	str_done(&bash);
	str_done(&zsh);
	str_done(&fish);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_reach_the_fields_of_their_rows),
		cmocka_unit_test(numbers_and_words_are_stored_in_the_width_of_their_field),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(an_unambiguous_beginning_of_an_option_is_enough),
		cmocka_unit_test(a_complaint_names_option_value_and_expectation),
		cmocka_unit_test(an_option_is_no_value_of_another),
		cmocka_unit_test(help_has_groups_defaults_and_wrapped_text),
		cmocka_unit_test(the_man_page_has_every_option_and_its_details),
		cmocka_unit_test(completions_know_words_files_and_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
