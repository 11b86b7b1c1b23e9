/* SPDX-License-Identifier: Apache-2.0 */
/* Completions of bash, zsh and fish from the tables of options. */
#include "cmd/options/optiondocs.h"

#include <ctype.h>
#include <string.h>

#define HEAD                                      \
	"# SPDX-License-Identifier: Apache-2.0\n" \
	"# %s completion of perftracker(1). Written by tools/generate: edit src/cmd instead.\n"

enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_FOLDER };

/* What may follow an option beside its words. */
static enum value_kind value_kind(const struct option_row *row)
{
	const char *words = row->words != NULL ? row->words : "";
	const char *argument = row->argument != NULL ? row->argument : "";

	if (strcmp(argument, "DIR") == 0 || strstr(words, "DIR") != NULL)
		return VALUE_FOLDER;
	if (strcmp(argument, "FILE") == 0 || strcmp(argument, "PATH") == 0)
		return VALUE_FILE;
	return optiontable_has_value(row) ? VALUE_ANY : VALUE_NONE;
}

/* "own none" for "own|none|DIR". */
static void append_fixed_words(struct str *out, const char *words)
{
	const char *blank = "";

	while (words != NULL && *words != '\0') {
		size_t len = strcspn(words, "|");

		if (!isupper((unsigned char)words[0])) {
			str_printf(out, "%s%.*s", blank, (int)len, words);
			blank = " ";
		}
		words += len + (words[len] == '|');
	}
}

static void append_escaped(struct str *out, const char *text, const char *special)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') /* ends the quotes, adds one, opens them again */
			str_append(out, "'\\'");
		if (*text == '`')
			continue;
		if (strchr(special, *text) != NULL)
			str_append_char(out, '\\');
		str_append_char(out, *text);
	}
}

/* --- bash --- */

static void bash_value(struct str *out, const struct command *command, const struct option_row *row)
{
	enum value_kind kind = value_kind(row);

	if (kind == VALUE_NONE)
		return;
	str_printf(out, "\t'%s --%s'", command->name, row->name);
	if (row->letter != '\0')
		str_printf(out, " | '%s -%c'", command->name, row->letter);
	str_append(out, ") ");
	if (row->words != NULL) {
		str_append(out, "_perftracker_words '");
		append_fixed_words(out, row->words);
		str_append(out, "'");
	}
	if (kind == VALUE_FOLDER)
		str_printf(out, "%s_perftracker_paths -d", row->words != NULL ? "; " : "");
	else if (kind == VALUE_FILE)
		str_append(out, "_perftracker_paths -f");
	str_append(out, kind == VALUE_ANY && row->words == NULL ? ";;\n" : " ;;\n");
}

static void bash_options(struct str *out, const struct command *command)
{
	str_printf(out, "\t%s) echo '", command->name);
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (command->rows[i].name != NULL)
			str_printf(out, "--%s ", command->rows[i].name);
	}
	str_append(out, "--help' ;;\n");
}

void optiondocs_bash(const struct command *const *commands, size_t cnt, struct str *out)
{
	str_printf(out, HEAD "# shellcheck shell=bash\n\n_perftracker_options() {\n\tcase $1 in\n",
		   "bash");
	for (size_t i = 0; i < cnt; i++)
		bash_options(out, commands[i]);
	str_append(out, "\tesac\n}\n\n"
			"_perftracker_words() {\n"
			"\tlocal found\n"
			"\tmapfile -t found < <(compgen -W \"$1\" -- \"$word\")\n"
			"\tCOMPREPLY+=(\"${found[@]}\")\n}\n\n"
			"_perftracker_paths() {\n"
			"\tlocal found\n"
			"\tmapfile -t found < <(compgen \"$1\" -- \"$word\")\n"
			"\tCOMPREPLY+=(\"${found[@]}\")\n}\n\n"
			"# The value of an option: returns 1 if the option has none.\n"
			"_perftracker_value() {\n\tcase $1 in\n");
	for (size_t i = 0; i < cnt; i++) {
		for (size_t k = 0; k < commands[i]->row_cnt; k++) {
			if (commands[i]->rows[k].name != NULL)
				bash_value(out, commands[i], &commands[i]->rows[k]);
		}
	}
	str_append(out,
		   "\t*) return 1 ;;\n\tesac\n}\n\n"
		   "_perftracker() {\n"
		   "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i\n"
		   "\tlocal command=${COMP_WORDS[1]}\n"
		   "\tCOMPREPLY=()\n"
		   "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
		   "\t\t_perftracker_words '");
	for (size_t i = 0; i < cnt; i++)
		str_printf(out, "%s ", commands[i]->name);
	str_append(
		out,
		"--help --version'\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		"\t\tif [ \"${COMP_WORDS[i]}\" = -- ] && declare -F _command_offset > /dev/null; then\n"
		"\t\t\t_command_offset $((i + 1))\n"
		"\t\t\treturn\n"
		"\t\tfi\n"
		"\tdone\n"
		"\tif _perftracker_value \"$command $before\"; then\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tif [[ $word == -* ]]; then\n"
		"\t\t_perftracker_words \"$(_perftracker_options \"$command\")\"\n"
		"\telse\n"
		"\t\t_perftracker_paths -f\n"
		"\tfi\n"
		"}\n\ncomplete -o filenames -F _perftracker perftracker\n");
}

/* --- zsh --- */

/*
 * An action of _arguments, inside single quotes: each colon needs a backslash. _arguments adds
 * compadd's options behind the first word unless that follows a blank; _alternative takes none.
 */
static void zsh_value(struct str *out, const struct option_row *row, enum value_kind kind)
{
	bool both = kind == VALUE_FOLDER && row->words != NULL;

	str_append(out, ":value:");
	if (both)
		str_append(out, " _alternative \"words\\:word\\:");
	if (row->words != NULL) {
		str_append(out, "(");
		append_fixed_words(out, row->words);
		str_append(out, ")");
	}
	if (both)
		str_append(out, "\" \"folders\\:folder\\:_files -/\"");
	else if (kind == VALUE_FOLDER)
		str_append(out, "_files -/");
	else if (kind == VALUE_FILE)
		str_append(out, "_files");
}

static void zsh_row(struct str *out, const struct option_row *row)
{
	enum value_kind kind = value_kind(row);

	str_append(out, " \\\n\t\t");
	if (row->letter != '\0')
		str_printf(out, "{-%c,--%s%s}", row->letter, row->name,
			   kind != VALUE_NONE ? "=" : "");
	str_append(out, "'");
	if (row->letter == '\0')
		str_printf(out, "--%s%s", row->name, kind != VALUE_NONE ? "=" : "");
	str_append(out, "[");
	append_escaped(out, row->help, "[]:\\");
	str_append(out, "]");
	if (kind != VALUE_NONE)
		zsh_value(out, row, kind);
	str_append(out, "'");
}

static void zsh_command(struct str *out, const struct command *command)
{
	bool runs = command->order == ORDER_BEFORE;

	str_printf(out, "%s)\n\t_arguments%s", command->name, runs ? " -S" : "");
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (command->rows[i].name != NULL)
			zsh_row(out, &command->rows[i]);
	}
	str_printf(out, " \\\n\t\t'(- *)'{-h,--help}'[show help]' \\\n\t\t%s\n\t;;\n",
		   runs ? "'*::command:_normal'" : "'*:file:_files'");
}

void optiondocs_zsh(const struct command *const *commands, size_t cnt, struct str *out)
{
	str_printf(out, "#compdef perftracker\n" HEAD "\nlocal -a commands\ncommands=(\n", "zsh");
	for (size_t i = 0; i < cnt; i++) {
		str_printf(out, "\t'%s:", commands[i]->name);
		append_escaped(out, commands[i]->summary, ":\\");
		str_append(out, "'\n");
	}
	str_append(out, ")\n\nif (( CURRENT == 2 )); then\n\t_describe command commands\n"
			"\treturn\nfi\nshift words\n(( CURRENT-- ))\ncase $words[1] in\n");
	for (size_t i = 0; i < cnt; i++)
		zsh_command(out, commands[i]);
	str_append(out, "esac\n");
}

/* --- fish --- */

static void fish_row(struct str *out, const struct command *command, const struct option_row *row)
{
	enum value_kind kind = value_kind(row);

	str_printf(out, "complete -c perftracker -n '__fish_seen_subcommand_from %s' -l %s",
		   command->name, row->name);
	if (row->letter != '\0')
		str_printf(out, " -s %c", row->letter);
	if (kind == VALUE_FILE)
		str_append(out, " -r -F");
	else if (kind == VALUE_FOLDER)
		str_append(out, " -x -a '(__fish_complete_directories)'");
	else if (kind == VALUE_ANY)
		str_append(out, " -x");
	if (row->words != NULL) {
		str_append(out, " -a '");
		append_fixed_words(out, row->words);
		str_append(out, "'");
	}
	str_append(out, " -d '");
	append_escaped(out, row->help, "\\");
	str_append(out, "'\n");
}

void optiondocs_fish(const struct command *const *commands, size_t cnt, struct str *out)
{
	str_printf(out, HEAD "\n", "fish");
	for (size_t i = 0; i < cnt; i++) {
		str_printf(out, "complete -c perftracker -f -n __fish_use_subcommand -a %s -d '",
			   commands[i]->name);
		append_escaped(out, commands[i]->summary, "\\");
		str_append(out, "'\n");
	}
	for (size_t i = 0; i < cnt; i++) {
		for (size_t k = 0; k < commands[i]->row_cnt; k++) {
			if (commands[i]->rows[k].name != NULL)
				fish_row(out, commands[i], &commands[i]->rows[k]);
		}
		str_printf(
			out,
			"complete -c perftracker -n '__fish_seen_subcommand_from %s' -l help -s h "
			"-d 'show help'\n",
			commands[i]->name);
	}
}
