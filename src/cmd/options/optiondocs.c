/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/optiondocs.h"

#include "cmd/cmd.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 80
#define HELP_COLUMN 26

/* --- help --- */

/* `x` is printed as 'x': people paste it into a shell. */
static void append_plain(struct str *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		str_append_char(out, text[i] == '`' ? '\'' : text[i]);
}

/* Wraps text at WIDTH; the cursor is at column, the following lines start at indent. */
static void append_wrapped(struct str *out, const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (!first && column + 1 + len > WIDTH) {
			str_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			str_append_char(out, ' ');
			column++;
		}
		append_plain(out, text, len);
		column += len;
		text += len + (text[len] == ' ');
		first = false;
	}
	str_append_char(out, '\n');
}

/* Each line of text is a paragraph. */
static void append_paragraphs(struct str *out, const char *text)
{
	while (text != NULL && *text != '\0') {
		size_t len = strcspn(text, "\n");
		_cleanup_(str_done) struct str line = { 0 };

		str_append_len(&line, text, len);
		str_append_char(out, '\n');
		append_wrapped(out, str_borrow(&line), 0, 0);
		text += len + (text[len] == '\n');
	}
}

static void append_row_help(struct str *out, const struct option_row *row)
{
	_cleanup_(str_done) struct str left = { 0 }, help = { 0 };

	if (row->letter != '\0')
		str_printf(&left, "  -%c, --%s", row->letter, row->name);
	else
		str_printf(&left, "      --%s", row->name);
	if (optiontable_has_value(row))
		str_printf(&left, " %s", row->argument != NULL ? row->argument : row->words);
	str_append(&help, row->help);
	if (row->preset != NULL)
		str_printf(&help, " [%s]", row->preset);
	str_append(out, str_borrow(&left));
	if (left.len + 2 > HELP_COLUMN)
		str_printf(out, "\n%*s", HELP_COLUMN, "");
	else
		str_printf(out, "%*s", (int)(HELP_COLUMN - left.len), "");
	append_wrapped(out, str_borrow(&help), HELP_COLUMN, HELP_COLUMN);
}

static void append_usage(struct str *out, const struct command *command)
{
	const char *at = command->usage, *word = "Usage:";

	while (*at != '\0') {
		size_t len = strcspn(at, "\n");

		str_printf(out, "%s perftracker %s %.*s\n", word, command->name, (int)len, at);
		at += len + (at[len] == '\n');
		word = "      ";
	}
}

void optiondocs_append_help(const struct command *command, struct str *out)
{
	static const struct option_row help = { .name = "help",
						.letter = 'h',
						.help = "show this help" };
	const struct option_row *first = command->rows;

	append_usage(out, command);
	append_paragraphs(out, command->about);
	if (command->row_cnt == 0 || first->name != NULL)
		str_append(out, "\nOptions:\n");
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (command->rows[i].name != NULL)
			append_row_help(out, &command->rows[i]);
		else
			str_printf(out, "\n%s:\n", command->rows[i].help);
	}
	append_row_help(out, &help);
	append_paragraphs(out, command->notes);
	str_append(out, "\nExamples:\n");
	for (const char *at = command->examples; *at != '\0';) {
		size_t len = strcspn(at, "\n");

		str_printf(out, "  %.*s\n", (int)len, at);
		at += len + (at[len] == '\n');
	}
	str_printf(out, "\n'man perftracker-%s' has more.\n", command->name);
}

void optiondocs_help(const struct command *command)
{
	struct str out = { 0 };

	optiondocs_append_help(command, &out);
	(void)fputs(str_borrow(&out), stdout);
	str_done(&out);
}

/* --- man page --- */

static void append_roff_char(struct str *out, char c)
{
	if (c == '-')
		str_append(out, "\\-");
	else if (c == '\\')
		str_append(out, "\\e");
	else
		str_append_char(out, c);
}

/* Length of the option at text, "--keep-traces"; 0: there is none. */
static size_t option_len(const char *text)
{
	size_t len = 2;

	if (strncmp(text, "--", 2) != 0 || !islower((unsigned char)text[2]))
		return 0;
	while (islower((unsigned char)text[len]) ||
	       (text[len] == '-' && islower((unsigned char)text[len + 1])))
		len++;
	return len;
}

static void append_bold(struct str *out, const char *text, size_t len)
{
	str_append(out, "\\fB");
	for (size_t i = 0; i < len; i++)
		append_roff_char(out, text[i]);
	str_append(out, "\\fP");
}

/* A sentence on each line, options and `words` in bold. */
static void append_roff(struct str *out, const char *text)
{
	while (*text != '\0') {
		size_t len = option_len(text), quoted = strcspn(text + 1, "`");

		if (len > 0) {
			append_bold(out, text, len);
			text += len;
		} else if (*text == '`' && text[1 + quoted] == '`') {
			append_bold(out, text + 1, quoted);
			text += quoted + 2;
		} else if (strncmp(text, ". ", 2) == 0) {
			str_append(out, ".\n");
			text += 2;
		} else {
			append_roff_char(out, *text++);
		}
	}
}

/* "text | json" for "text|json". Words in capitals stand for a value. */
static void append_choice(struct str *out, const char *words)
{
	while (*words != '\0') {
		size_t len = strcspn(words, "|");

		str_printf(out, " %s %.*s", isupper((unsigned char)words[0]) ? "Ar" : "Cm",
			   (int)len, words);
		words += len;
		if (*words == '|') {
			str_append(out, " |");
			words++;
		}
	}
}

static void append_row_man(struct str *out, const struct option_row *row)
{
	str_append(out, ".It");
	if (row->letter != '\0')
		str_printf(out, " Fl %c ,", row->letter);
	str_printf(out, " Fl \\-%s", row->name);
	if (row->words != NULL)
		append_choice(out, row->words);
	else if (row->argument != NULL)
		str_printf(out, " Ar \\&%s", row->argument);
	str_append_char(out, '\n');
	str_append_char(out, (char)toupper((unsigned char)row->help[0]));
	append_roff(out, row->help + 1);
	str_append(out, ".\n");
	if (row->preset != NULL) {
		str_append(out, "Default: ");
		append_roff(out, row->preset);
		str_append(out, ".\n");
	}
	if (row->more != NULL) {
		append_roff(out, row->more);
		str_append_char(out, '\n');
	}
}

void optiondocs_man(const struct command *command, struct str *out)
{
	bool open = false;

	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];

		if (open && row->name == NULL)
			str_append(out, ".El\n");
		if (row->name == NULL)
			str_printf(out, ".Ss %s\n", row->help);
		if (!open || row->name == NULL)
			str_append(out, ".Bl -tag -width Ds\n");
		open = true;
		if (row->name != NULL)
			append_row_man(out, row);
	}
	str_append(out, open ? ".It" : ".Bl -tag -width Ds\n.It");
	str_append(out, " Fl h , Fl \\-help\nShow a summary of the options.\n.El\n");
}

/* --- perftracker __docs --- */

static int find_man(const struct command *const *commands, size_t cnt, const char *name,
		    struct str *out)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			optiondocs_man(commands[i], out);
			return 0;
		}
	}
	return -1;
}

int optiondocs_main(const struct command *const *commands, size_t cnt, int word_cnt, char **words)
{
	_cleanup_(str_done) struct str out = { 0 };
	const char *format = word_cnt > 0 ? words[0] : "";

	if (strcmp(format, "bash") == 0)
		optiondocs_bash(commands, cnt, &out);
	else if (strcmp(format, "zsh") == 0)
		optiondocs_zsh(commands, cnt, &out);
	else if (strcmp(format, "fish") == 0)
		optiondocs_fish(commands, cnt, &out);
	else if (strcmp(format, "man") != 0 || word_cnt != 2 ||
		 find_man(commands, cnt, words[1], &out) < 0)
		return cmd_fail("__docs: expected man COMMAND, bash, zsh or fish");
	(void)fputs(str_borrow(&out), stdout);
	return EXIT_DONE;
}
