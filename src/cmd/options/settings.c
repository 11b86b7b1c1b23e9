/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/settings.h"

#include "base/file.h"
#include "base/text/nearest.h"
#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_BYTES_MAX 65536u
#define PREFIX "PERFTRACKER_"
#define CONFIG "config"

static bool is_setting(const struct option_row *row)
{
	return row->name != NULL && !row->not_a_setting;
}

static int set_bool(const char *text, bool *field)
{
	static const char *const words[][2] = {
		{ "no", "yes" }, { "false", "true" }, { "0", "1" }, { "off", "on" }
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (int value = 0; value < 2; value++) {
			if (strcasecmp(text, words[i][value]) != 0)
				continue;
			*field = value == 1;
			return 0;
		}
	}
	return -EINVAL;
}

/* Outside of the command line an option without a value is yes or no. */
static int set_row(const struct option_row *row, const char *text, void *options, struct err *err)
{
	if (row->type != OPTION_FLAG || row->words != NULL)
		return optiontable_set(row, text, options, err);
	if (set_bool(text, (bool *)((char *)options + row->off)) == 0)
		return 0;
	return err_set(err, EINVAL, "--%s '%s': expected yes or no", row->name, text);
}

/* --- the file --- */

static size_t find_row(const struct command *command, const char *name)
{
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (is_setting(&command->rows[i]) && strcmp(command->rows[i].name, name) == 0)
			return i;
	}
	return command->row_cnt;
}

static int unknown_name(const struct command *command, const char *name, struct err *err)
{
	struct nearest nearest;

	nearest_init(&nearest, name, strlen(name));
	for (size_t i = 0; i < command->row_cnt; i++) {
		if (is_setting(&command->rows[i]))
			nearest_offer(&nearest, command->rows[i].name);
	}
	if (nearest.best == NULL)
		return err_set(err, EINVAL, "unknown setting '%s'", name);
	return err_set(err, EINVAL, "unknown setting '%s': did you mean '%s'?", name, nearest.best);
}

/* Ends text behind its last letter that is no space. */
static void trim_end(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
}

/* Takes "KEY = VALUE"; at *ret_at is what an error is about. */
static int take_pair(const struct command *command, struct settings *settings, char *pair,
		     void *options, const char **ret_at, struct err *err)
{
	char *equals = strchr(pair, '='), *value;
	size_t row;

	*ret_at = pair;
	if (equals == NULL)
		return err_set(err, EINVAL, "expected NAME = VALUE, found '%.80s'", pair);
	*equals = '\0';
	trim_end(pair);
	row = find_row(command, pair);
	if (row == command->row_cnt)
		return unknown_name(command, pair, err);
	value = equals + 1 + strspn(equals + 1, " \t");
	*ret_at = value;
	settings->of_row[row] = (struct setting){ .source = SETTING_FILE, .text = value };
	return set_row(&command->rows[row], value, options, err);
}

static int take_line(const struct command *command, struct settings *settings, char *line,
		     int number, void *options, struct err *err)
{
	char *pair = line + strspn(line, " \t\r");
	const char *at = pair;
	struct setting before[OPTION_ROWS_MAX];
	struct err why = { "" };

	if (pair[0] == '\0' || pair[0] == '#')
		return 0;
	memcpy(before, settings->of_row, sizeof(before));
	trim_end(pair);
	if (take_pair(command, settings, pair, options, &at, &why) < 0)
		return err_set(err, EINVAL, "%s:%d:%d: %s", settings->path, number,
			       (int)(at - line) + 1, why.text);
	for (size_t i = 0; i < OPTION_ROWS_MAX; i++) {
		if (settings->of_row[i].text != before[i].text)
			settings->of_row[i].line = number;
	}
	return 0;
}

int settings_take_file(const struct command *command, struct settings *settings, char *text,
		       void *options, struct err *err)
{
	char *line, *rest = text;
	int number = 0, ret = 0;

	while (ret == 0 && (line = strsep(&rest, "\n")) != NULL)
		ret = take_line(command, settings, line, ++number, options, err);
	return ret;
}

/* Without a name of the user's own, a missing file is none. */
static int read_file(struct settings *settings, bool given, struct err *err)
{
	int fd = open(settings->path, O_RDONLY | O_CLOEXEC), ret;
	char *text = NULL;
	size_t len;

	if (fd < 0 && !given && (errno == ENOENT || errno == ENOTDIR)) {
		settings->path[0] = '\0';
		return 0;
	}
	if (fd < 0)
		return err_set(err, errno, "%s: cannot open: %s", settings->path, strerror(errno));
	ret = file_read_whole(settings->path, fd, FILE_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	if (ret < 0)
		return ret;
	settings->contents = calloc(len + 1, 1);
	if (settings->contents != NULL)
		memcpy(settings->contents, text, len);
	free(text);
	return settings->contents == NULL ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* "" if there is no home. */
static void default_path(char *ret, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int len = 0;

	ret[0] = '\0';
	if (config != NULL && config[0] == '/')
		len = snprintf(ret, size, "%s/perftracker/run.conf", config);
	else if (home != NULL && home[0] == '/')
		len = snprintf(ret, size, "%s/.config/perftracker/run.conf", home);
	if (len < 0 || (size_t)len >= size)
		ret[0] = '\0';
}

static int take_config(const struct command *command, struct settings *settings, const char *given,
		       void *options, struct err *err)
{
	int ret;

	if (given != NULL)
		(void)snprintf(settings->path, sizeof(settings->path), "%s", given);
	else
		default_path(settings->path, sizeof(settings->path));
	if (settings->path[0] == '\0')
		return 0;
	ret = read_file(settings, given != NULL, err);
	if (ret < 0 || settings->contents == NULL)
		return ret;
	return settings_take_file(command, settings, settings->contents, options, err);
}

/* --- the environment --- */

static void environment_name(const struct option_row *row, char *ret, size_t size)
{
	size_t len = (size_t)snprintf(ret, size, PREFIX "%s", row->name);

	for (size_t i = strlen(PREFIX); i < MIN(len, size); i++)
		ret[i] = ret[i] == '-' ? '_' : (char)toupper((unsigned char)ret[i]);
}

static const char *environment_of(const struct option_row *row)
{
	char name[80];

	environment_name(row, name, sizeof(name));
	return getenv(name);
}

static int take_environment(const struct command *command, struct settings *settings, void *options,
			    struct err *err)
{
	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];
		const char *text = is_setting(row) ? environment_of(row) : NULL;
		struct err why = { "" };
		char name[80];

		if (text == NULL || text[0] == '\0')
			continue;
		environment_name(row, name, sizeof(name));
		if (set_row(row, text, options, &why) < 0)
			return err_set(err, EINVAL, "%s in the environment: %s", name, why.text);
		settings->of_row[i] =
			(struct setting){ .source = SETTING_ENVIRONMENT, .text = text };
	}
	return 0;
}

/* --- all --- */

/* What the command line said counts more than what was taken since. */
static int take_options(const struct command *command, struct settings *settings,
			const char *const *texts, void *options, struct err *err)
{
	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];

		if (texts[i] == NULL)
			continue;
		settings->of_row[i] =
			(struct setting){ .source = SETTING_OPTION, .text = texts[i] };
		if (optiontable_set(row, optiontable_has_value(row) ? texts[i] : NULL, options,
				    err) < 0)
			return -EINVAL;
	}
	return 0;
}

static const char *config_of(const struct command *command, const char *const *texts)
{
	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];
		const char *text;

		if (row->name == NULL || strcmp(row->name, CONFIG) != 0)
			continue;
		text = texts[i] != NULL ? texts[i] : environment_of(row);
		return text != NULL && text[0] != '\0' ? text : NULL;
	}
	return NULL;
}

int settings_parse(const struct command *command, int argc, char **argv, struct settings *settings,
		   void *options, int *ret_first)
{
	const char *texts[OPTION_ROWS_MAX] = { NULL };
	struct err err = { "" };
	int status = optiontable_parse_noting(command, argc, argv, options, texts, ret_first);

	if (status != OPTIONS_PARSED)
		return status;
	*settings = (struct settings){ .contents = NULL };
	if (take_config(command, settings, config_of(command, texts), options, &err) < 0 ||
	    take_environment(command, settings, options, &err) < 0 ||
	    take_options(command, settings, texts, options, &err) < 0) {
		fprintf(stderr, "perftracker %s: %s\n", command->name, err.text);
		return EXIT_USAGE;
	}
	return OPTIONS_PARSED;
}

void settings_done(struct settings *settings)
{
	free(settings->contents);
	settings->contents = NULL;
}

static void describe_source(const struct settings *settings, const struct option_row *row,
			    const struct setting *setting, struct str *out)
{
	char name[80];

	switch (setting->source) {
	case SETTING_DEFAULT:
		str_append(out, "default");
		break;
	case SETTING_FILE:
		str_printf(out, "%s:%d", settings->path, setting->line);
		break;
	case SETTING_ENVIRONMENT:
		environment_name(row, name, sizeof(name));
		str_append(out, name);
		break;
	case SETTING_OPTION:
		str_append(out, "command line");
		break;
	}
}

static const char *value_of(const struct option_row *row, const struct setting *setting)
{
	if (setting->source == SETTING_DEFAULT)
		return row->preset != NULL ? row->preset
					   : (optiontable_has_value(row) ? "-" : "no");
	return setting->text[0] != '\0' ? setting->text : "yes";
}

void settings_describe(const struct command *command, const struct settings *settings,
		       struct str *out)
{
	str_printf(out, "%-16s %-24s %s\n", "setting", "value", "from");
	for (size_t i = 0; i < command->row_cnt; i++) {
		const struct option_row *row = &command->rows[i];

		if (!is_setting(row))
			continue;
		str_printf(out, "%-16s %-24s ", row->name, value_of(row, &settings->of_row[i]));
		describe_source(settings, row, &settings->of_row[i], out);
		str_append(out, "\n");
	}
}
