/* SPDX-License-Identifier: Apache-2.0 */
#include "live/site/site.h"

#include "base/file.h"
#include "base/text/nearest.h"
#include "live/link/brokerurl.h"
#include "live/site/site_parts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PREFIX "PERFTRACKER_"

/* --- problems --- */

void site_problem(struct site_problems *problems, const struct site_place *place, const char *fmt,
		  ...)
{
	struct err line;
	char text[400];
	va_list ap;

	if (problems->cnt++ >= SITE_PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* err_set() replaces control characters of the file. */
	if (place->line > 0)
		(void)err_set(&line, EINVAL, "%s:%u:%u: %s", place->name, place->line,
			      place->column, text);
	else
		(void)err_set(&line, EINVAL, "%s: %s", place->name, text);
	str_printf(&problems->lines, "%s\n", line.text);
}

void site_problems_done(struct site_problems *problems)
{
	str_done(&problems->lines);
}

void site_unknown(const char *name, const struct site_place *place, struct site_problems *problems)
{
	struct nearest nearest;

	nearest_init(&nearest, name, strnlen(name, 64));
	for (size_t i = 0; i < site_key_cnt; i++)
		nearest_offer(&nearest, site_keys[i].name);
	if (nearest.best != NULL)
		site_problem(problems, place,
			     "expected a key of the configuration, found '%.64s': did you mean "
			     "'%s'?",
			     name, nearest.best);
	else
		site_problem(problems, place,
			     "expected a key of the configuration, found '%.64s': docs/fleet.md "
			     "lists them",
			     name);
}

/* --- values --- */

static void *field_of(const struct site *site, const struct site_key *key)
{
	return (char *)(uintptr_t)&site->values + key->off;
}

static bool parse_bool(const char *text, bool *ret)
{
	static const char *const words[][2] = { { "no", "yes" },
						{ "false", "true" },
						{ "off", "on" } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (int value = 0; value < 2; value++) {
			if (strcasecmp(text, words[i][value]) != 0)
				continue;
			*ret = value == 1;
			return true;
		}
	}
	return false;
}

static bool parse_number(const struct site_key *key, const char *text, uint32_t *ret)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)text[0]) || strlen(text) > 9)
		return false;
	value = strtoul(text, &end, 10);
	if (*end != '\0' || value < key->low || value > key->high)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* The index of a word in "a|b|c". */
static bool parse_word(const char *words, const char *text, uint32_t *ret)
{
	size_t len = strlen(text);

	for (uint32_t i = 0; *words != '\0'; i++) {
		size_t word_len = strcspn(words, "|");

		if (word_len == len && strncmp(words, text, len) == 0) {
			*ret = i;
			return true;
		}
		words += word_len + (words[word_len] == '|');
	}
	return false;
}

static void set_text(struct site *site, const struct site_key *key, const char *text,
		     const struct site_place *place, struct site_problems *problems)
{
	char **field = field_of(site, key), *copy;

	if (key->type == SITE_PATH && text[0] != '\0' && text[0] != '/') {
		site_problem(problems, place, "%s: expected an absolute path, found '%.200s'",
			     key->name, text);
		return;
	}
	copy = strdup(text);
	if (copy == NULL) {
		site_problem(problems, place, "%s: out of memory", key->name);
		return;
	}
	free(*field);
	*field = copy;
}

/* What a value has to look like. */
static void append_expected(const struct site_key *key, char *ret, size_t size)
{
	if (key->type == SITE_BOOL)
		(void)snprintf(ret, size, "yes or no");
	else if (key->type == SITE_NUMBER)
		(void)snprintf(ret, size, "a number from %u to %u", key->low, key->high);
	else
		(void)snprintf(ret, size, "one of %s", key->words);
}

void site_set(struct site *site, const struct site_key *key, const char *text,
	      const struct site_place *place, struct site_problems *problems)
{
	void *field = field_of(site, key);
	char expected[80];
	bool valid = true;

	switch (key->type) {
	case SITE_TEXT:
	case SITE_PATH:
	case SITE_LIST:
		set_text(site, key, text, place, problems);
		break;
	case SITE_NUMBER:
		valid = parse_number(key, text, field);
		break;
	case SITE_BOOL:
		valid = parse_bool(text, field);
		break;
	case SITE_WORD:
		valid = parse_word(key->words, text, field);
		break;
	}
	if (!valid) {
		append_expected(key, expected, sizeof(expected));
		site_problem(problems, place, "%s: expected %s, found '%.64s'", key->name, expected,
			     text);
	}
	site->origins[key - site_keys] = (struct site_origin){ .source = place->source,
							       .line = place->line,
							       .column = place->column };
}

/* --- places --- */

/* The name up to its first dot: a part of it that subjects of the bus can have. */
static void own_name(char ret[65])
{
	memset(ret, 0, 65);
	if (gethostname(ret, 64) != 0)
		(void)snprintf(ret, 65, "unknown");
	ret[strcspn(ret, ".")] = '\0';
}

int site_init(struct site *site)
{
	static const struct site_place place = { .source = SITE_DEFAULT, .name = "default" };
	struct site_problems problems = { 0 };
	char host[65];

	*site = (struct site){ .path = "" };
	own_name(host);
	for (size_t i = 0; i < site_key_cnt; i++) {
		bool is_host = strcmp(site_keys[i].name, "host") == 0;

		site_set(site, &site_keys[i], is_host ? host : site_keys[i].preset, &place,
			 &problems);
	}
	site_problems_done(&problems);
	return problems.cnt == 0 ? 0 : -ENOMEM;
}

void site_done(struct site *site)
{
	for (size_t i = 0; i < site_key_cnt; i++) {
		enum site_type type = site_keys[i].type;
		char **field = field_of(site, &site_keys[i]);

		if (type != SITE_TEXT && type != SITE_PATH && type != SITE_LIST)
			continue;
		free(*field);
		*field = NULL;
	}
	explicit_bzero(site->password, sizeof(site->password));
}

void site_take_file(struct site *site, const char *path, struct site_problems *problems)
{
	const struct site_place place = { .source = SITE_FILE, .name = path };
	_cleanup_free_ char *text = NULL;
	struct err err = { "" };
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		site_problem(problems, &place, "%s: name the site's file with --config",
			     strerror(errno));
		return;
	}
	if (file_read_whole(path, fd, SITE_FILE_MAX, &text, &len, &err) < 0) {
		problems->cnt++;
		str_printf(&problems->lines, "%s\n", err.text);
	} else {
		site_take_text(site, path, text, len, problems);
	}
	(void)close(fd);
}

static void variable_name(const struct site_key *key, char ret[64])
{
	size_t at = (size_t)snprintf(ret, 64, PREFIX);

	for (const char *c = key->name; *c != '\0' && at < 63; c++)
		ret[at++] = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
	ret[at] = '\0';
}

void site_take_environment(struct site *site, const char *(*find)(const char *name),
			   struct site_problems *problems)
{
	for (size_t i = 0; i < site_key_cnt; i++) {
		char name[64];
		const struct site_place place = { .source = SITE_ENVIRONMENT, .name = name };
		const char *text;

		variable_name(&site_keys[i], name);
		text = find(name);
		if (text != NULL && text[0] != '\0')
			site_set(site, &site_keys[i], text, &place, problems);
	}
}

void site_take_option(struct site *site, const char *pair, struct site_problems *problems)
{
	static const struct site_place place = { .source = SITE_OPTION, .name = "--set" };
	const char *equals = strchr(pair, '=');
	const struct site_key *key;
	char name[64];

	if (equals == NULL) {
		site_problem(problems, &place, "expected KEY=VALUE, found '%.64s'", pair);
		return;
	}
	(void)snprintf(name, sizeof(name), "%.*s", (int)MIN(equals - pair, 63), pair);
	key = sitekeys_find(name);
	if (key == NULL)
		site_unknown(name, &place, problems);
	else
		site_set(site, key, equals + 1, &place, problems);
}

/* --- what is in force --- */

static void append_value(const struct site *site, const struct site_key *key, char *ret,
			 size_t size)
{
	const void *field = field_of(site, key);
	const char *words = key->words;

	switch (key->type) {
	case SITE_TEXT:
	case SITE_PATH:
	case SITE_LIST:
		(void)snprintf(ret, size, "%s", *(char *const *)field);
		break;
	case SITE_NUMBER:
		(void)snprintf(ret, size, "%u", *(const uint32_t *)field);
		break;
	case SITE_BOOL:
		(void)snprintf(ret, size, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case SITE_WORD:
		for (uint32_t i = 0; i < *(const uint32_t *)field; i++)
			words = strchr(words, '|') + 1;
		(void)snprintf(ret, size, "%.*s", (int)strcspn(words, "|"), words);
		break;
	}
}

void site_describe(const struct site *site, struct str *out)
{
	str_printf(out, "%-22s %-36s %s\n", "key", "value", "from");
	for (size_t i = 0; i < site_key_cnt; i++) {
		const struct site_origin *origin = &site->origins[i];
		char value[1024], name[64];

		append_value(site, &site_keys[i], value, sizeof(value));
		str_printf(out, "%-22s %-36s ", site_keys[i].name, value[0] != '\0' ? value : "-");
		variable_name(&site_keys[i], name);
		if (origin->source == SITE_FILE)
			str_printf(out, "%s:%u\n", site->path, origin->line);
		else
			str_printf(out, "%s\n",
				   origin->source == SITE_DEFAULT  ? "default"
				   : origin->source == SITE_OPTION ? "--set"
								   : name);
	}
}
