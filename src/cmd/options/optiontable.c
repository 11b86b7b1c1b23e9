/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/optiontable.h"

#include "base/text/nearest.h"
#include "cmd/cmd.h"
#include "cmd/options/optiondocs.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define VERSION_ID 255
#define FIRST_ID 256 /* of long options: 256 + index of the row */

struct getopt_tables {
	struct option longs[OPTION_ROWS_MAX + 3];
	char shorts[2 * OPTION_ROWS_MAX + 6];
};

static void fill_tables(const struct command *command, struct getopt_tables *ret)
{
	static const char *const modes[] = {
		[ORDER_ANY] = ":", [ORDER_BEFORE] = "+:", [ORDER_AS_GIVEN] = "-:"
	};
	size_t cnt = 0;
	char *at = stpcpy(ret->shorts, modes[command->order]);

	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];
		bool value = optiontable_has_value(row);

		if (row->name == NULL)
			continue;
		ret->longs[cnt++] =
			(struct option){ row->name, value ? required_argument : no_argument, NULL,
					 FIRST_ID + (int)i };
		if (row->letter != '\0')
			*at++ = row->letter;
		if (row->letter != '\0' && value)
			*at++ = ':';
	}
	ret->longs[cnt++] = (struct option){ "help", no_argument, NULL, 'h' };
	ret->longs[cnt++] = (struct option){ "version", no_argument, NULL, VERSION_ID };
	ret->longs[cnt] = (struct option){ NULL, 0, NULL, 0 };
	at[0] = 'h';
	at[1] = '\0';
}

static const struct option_row *find_row(const struct command *command, int id)
{
	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];

		if (row->name != NULL && (id == FIRST_ID + (int)i || id == row->letter))
			return row;
	}
	return NULL;
}

/* "text, json or html" for "text|json|html". */
static void append_words(struct str *out, const char *words)
{
	while (*words != '\0') {
		size_t len = strcspn(words, "|");
		bool last = words[len] == '\0';

		str_append_len(out, words, len);
		words += len + !last;
		if (!last)
			str_append(out, strchr(words, '|') != NULL ? ", " : " or ");
	}
}

static int complain(const struct option_row *row, const char *text, struct err *err)
{
	_cleanup_(str_done) struct str expected = { 0 };

	if (row->expected != NULL)
		str_append(&expected, row->expected);
	else if (row->words != NULL)
		append_words(&expected, row->words);
	else if (row->high > 0)
		str_printf(&expected, "a number in %.15g..%.15g", row->low, row->high);
	else
		str_append(&expected, "a number");
	return err_set(err, EINVAL, "--%s '%s': expected %s", row->name, text,
		       str_borrow(&expected));
}

static int set_word(const struct option_row *row, const char *text, void *field)
{
	const char *at = row->words;
	unsigned int index = 0;

	for (; *at != '\0'; index++) {
		size_t len = strcspn(at, "|");

		if (strlen(text) == len && strncmp(at, text, len) == 0) {
			memcpy(field, &index, sizeof(index));
			return 0;
		}
		at += len + (at[len] != '\0');
	}
	return -EINVAL;
}

static int set_double(const struct option_row *row, const char *text, void *field)
{
	double value;

	if (cmd_parse_double(text, row->low, row->high > 0 ? row->high : 1e300, &value) < 0)
		return -EINVAL;
	if (row->unit == UNIT_PERCENT)
		value /= 100;
	memcpy(field, &value, sizeof(value));
	return 0;
}

static int set_seconds(const struct option_row *row, const char *text, void *field)
{
	int64_t ns;
	double value;

	if (cmd_parse_double(text, row->low, row->high, &value) < 0)
		return -EINVAL;
	ns = (int64_t)(value * NSEC_PER_SEC);
	memcpy(field, &ns, sizeof(ns));
	return 0;
}

static int set_integer(const struct option_row *row, const char *text, void *field)
{
	int64_t high = row->high > 0 ? (int64_t)row->high : INT64_MAX, value;
	int narrow;

	if (row->type == OPTION_INT || row->type == OPTION_UINT)
		high = MIN(high, (int64_t)INT32_MAX);
	if (cmd_parse_int(text, (int64_t)row->low, high, &value) < 0)
		return -EINVAL;
	narrow = (int)value;
	if (row->type == OPTION_INT || row->type == OPTION_UINT)
		memcpy(field, &narrow, sizeof(narrow));
	else
		memcpy(field, &value, sizeof(value));
	return 0;
}

static int set_value(const struct option_row *row, const char *text, void *field)
{
	unsigned int word;

	switch (row->type) {
	case OPTION_FLAG:
		if (row->words != NULL && set_word(row, text, &word) < 0)
			return -EINVAL;
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		memcpy(field, &text, sizeof(text));
		return 0;
	case OPTION_DOUBLE:
		return set_double(row, text, field);
	case OPTION_UINT:
		if (row->words != NULL)
			return set_word(row, text, field);
		return set_integer(row, text, field);
	case OPTION_INT64:
		if (row->unit == UNIT_SECONDS)
			return set_seconds(row, text, field);
		return set_integer(row, text, field);
	case OPTION_INT:
	case OPTION_UINT64:
		return set_integer(row, text, field);
	case OPTION_OTHER:
		break;
	}
	return -EINVAL;
}

int optiontable_set(const struct option_row *row, const char *text, void *options, struct err *err)
{
	void *field = (char *)options + row->off;
	struct err why = { "" };
	int error = row->set != NULL ? row->set(field, text, &why) : set_value(row, text, field);

	if (error == 0)
		return 0;
	if (why.text[0] != '\0')
		return err_set(err, EINVAL, "%s", why.text);
	return complain(row, text != NULL ? text : "", err);
}

/* The names that a long option of this many letters may abbreviate. */
static size_t count_prefix(const struct command *command, const char *name, size_t len)
{
	size_t cnt = 0;

	for (size_t i = 0; i < command->row_cnt; i++) {
		const char *known = command->rows[i].name;

		cnt += known != NULL && strncmp(known, name, len) == 0;
	}
	return cnt;
}

/* word: "--fromat=json", as given. */
static int refuse_long(const struct command *command, const char *word)
{
	const char *name = word + strlen("--");
	int len = (int)strcspn(name, "=");
	struct nearest nearest;

	if (count_prefix(command, name, (size_t)len) > 1)
		return cmd_usage_error(command->name, "option '--%.*s' is ambiguous", len, name);
	nearest_init(&nearest, name, (size_t)len);
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (command->rows[i].name != NULL)
			nearest_offer(&nearest, command->rows[i].name);
	}
	nearest_offer(&nearest, "help");
	nearest_offer(&nearest, "version");
	if (nearest.best == NULL)
		return cmd_usage_error(command->name, "unknown option '--%.*s'", len, name);
	return cmd_usage_error(command->name, "unknown option '--%.*s': did you mean '--%s'?", len,
			       name, nearest.best);
}

/* id: what getopt_long() returned, ':' or '?'; word: the one it looked at. */
static int refuse(const struct command *command, int id, const char *word)
{
	const struct option_row *row = find_row(command, optopt);

	if (id == ':' && row != NULL)
		return cmd_usage_error(command->name, "option '--%s' requires an argument",
				       row->name);
	if (optopt == 0)
		return refuse_long(command, word);
	if (optopt < VERSION_ID && optopt != 'h')
		return cmd_usage_error(command->name, "unknown option '-%c'", optopt);
	return cmd_usage_error(command->name, "option '%.*s' takes no argument",
			       (int)strcspn(word, "="), word);
}

/* Handles one option. Returns OPTIONS_PARSED to continue, or an exit status. */
static int take_option(const struct command *command, int id, void *options)
{
	const struct option_row *row = find_row(command, id);
	struct err err = { "" };

	if (id == 'h' || id == VERSION_ID) {
		if (id == 'h')
			optiondocs_help(command);
		else
			(void)puts("perftracker " PT_VERSION);
		return EXIT_DONE;
	}
	if (id == 1 && command->order == ORDER_AS_GIVEN)
		return command->take_argument(options, optarg) < 0 ? cmd_fail("out of memory")
								   : OPTIONS_PARSED;
	/* "--out -- python": "--" is meant to end the options */
	if (optarg != NULL ? strcmp(optarg, "--") == 0 : optiontable_has_value(row))
		return cmd_usage_error(command->name, "option '--%s' requires an argument",
				       row->name);
	if (optiontable_set(row, optarg, options, &err) < 0)
		return cmd_usage_error(command->name, "%s", err.text);
	return OPTIONS_PARSED;
}

int optiontable_parse(const struct command *command, int argc, char **argv, void *options,
		      int *ret_first)
{
	return optiontable_parse_noting(command, argc, argv, options, NULL, ret_first);
}

static void note_text(const struct command *command, int id, const char **texts)
{
	const struct option_row *row = find_row(command, id);

	if (texts != NULL && row != NULL)
		texts[row - command->rows] = optarg != NULL ? optarg : "";
}

int optiontable_parse_noting(const struct command *command, int argc, char **argv, void *options,
			     const char **ret_texts, int *ret_first)
{
	struct getopt_tables tables;
	int id, status = OPTIONS_PARSED;

	fill_tables(command, &tables);
	optind = 0; /* resets getopt's state, with its order of arguments */
	opterr = 0;
	while (status == OPTIONS_PARSED &&
	       (id = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		note_text(command, id, ret_texts);
		status = id == '?' || id == ':' ? refuse(command, id, argv[optind - 1])
						: take_option(command, id, options);
	}
	*ret_first = optind;
	return status;
}

int optiontable_no_more(const struct command *command, int argc, char **argv, int first)
{
	if (first == argc)
		return OPTIONS_PARSED;
	return cmd_usage_error(command->name, "unexpected '%s'", argv[first]);
}
