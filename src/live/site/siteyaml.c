/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a site, read by the events of libyaml: a mapping of keys and of sections, which are
 * mappings of keys. Aliases, tags and further documents are refused: nothing in it needs them.
 * Source: https://pyyaml.org/wiki/LibYAML
 */
#include "base/vec.h"
#include "live/site/site_parts.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define NAME_MAX_BYTES 64u

struct reading {
	struct site *site;
	struct site_problems *problems;
	struct site_place place; /* of the latest event */
	yaml_parser_t parser;
	yaml_event_t event;
	bool failed; /* of the parser, or the end: no further event */
	bool seen[SITE_KEYS_MAX];
};

/* Takes the next event; the one before is freed. Returns false at the end or after an error. */
static bool next(struct reading *r)
{
	yaml_event_delete(&r->event);
	memset(&r->event, 0, sizeof(r->event));
	if (r->failed)
		return false;
	if (yaml_parser_parse(&r->parser, &r->event) == 0) {
		r->place.line = (unsigned)r->parser.problem_mark.line + 1;
		r->place.column = (unsigned)r->parser.problem_mark.column + 1;
		site_problem(r->problems, &r->place, "expected YAML: %s",
			     r->parser.problem != NULL ? r->parser.problem : "out of memory");
		r->failed = true;
		return false;
	}
	r->place.line = (unsigned)r->event.start_mark.line + 1;
	r->place.column = (unsigned)r->event.start_mark.column + 1;
	return true;
}

/* Passes over the value that the current event begins. */
static void skip_value(struct reading *r)
{
	unsigned depth = 0;

	do {
		depth += r->event.type == YAML_MAPPING_START_EVENT ||
			 r->event.type == YAML_SEQUENCE_START_EVENT;
		depth -= depth > 0 && (r->event.type == YAML_MAPPING_END_EVENT ||
				       r->event.type == YAML_SEQUENCE_END_EVENT);
	} while (depth > 0 && next(r));
}

static const char *scalar(const struct reading *r)
{
	return (const char *)r->event.data.scalar.value;
}

static const char *kind_of(const struct reading *r)
{
	return r->event.type == YAML_MAPPING_START_EVENT    ? "a mapping"
	       : r->event.type == YAML_SEQUENCE_START_EVENT ? "a list"
	       : r->event.type == YAML_ALIAS_EVENT	    ? "an alias"
							    : "something else";
}

/* A list of texts becomes one with commas. */
static void take_list(struct reading *r, const struct site_key *key)
{
	const struct site_place place = r->place;
	struct str text = { 0 };
	bool valid = true;

	while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
		if (r->event.type != YAML_SCALAR_EVENT) {
			site_problem(r->problems, &r->place, "%s: expected a text, found %s",
				     key->name, kind_of(r));
			skip_value(r);
			valid = false;
			continue;
		}
		str_printf(&text, "%s%s", text.len > 0 ? "," : "", scalar(r));
	}
	if (valid && !r->failed)
		site_set(r->site, key, str_borrow(&text), &place, r->problems);
	str_done(&text);
}

static void take_value(struct reading *r, const struct site_key *key)
{
	bool is_text = r->event.type == YAML_SCALAR_EVENT;

	if (is_text && strlen(scalar(r)) == r->event.data.scalar.length) {
		site_set(r->site, key, scalar(r), &r->place, r->problems);
	} else if (key->type == SITE_LIST && r->event.type == YAML_SEQUENCE_START_EVENT) {
		take_list(r, key);
	} else {
		site_problem(r->problems, &r->place, "%s: expected one value, found %s", key->name,
			     is_text ? "a text with a zero byte" : kind_of(r));
		skip_value(r);
	}
}

static bool is_section(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < site_key_cnt; i++) {
		if (strncmp(site_keys[i].name, name, len) == 0 && site_keys[i].name[len] == '.')
			return true;
	}
	return false;
}

static void take_mapping(struct reading *r, const char *section);

static void take_section(struct reading *r, const char *name)
{
	if (r->event.type == YAML_MAPPING_START_EVENT) {
		take_mapping(r, name);
	} else if (r->event.type != YAML_SCALAR_EVENT || scalar(r)[0] != '\0') {
		site_problem(r->problems, &r->place,
			     "%s: expected the keys of this section, indented, found %s", name,
			     r->event.type == YAML_SCALAR_EVENT ? "a value" : kind_of(r));
		skip_value(r);
	}
}

/* The value of a name, which the current event begins. at: where the name is. */
static void take_pair(struct reading *r, const char *name, const struct site_place *at)
{
	const struct site_key *key = sitekeys_find(name);

	if (key == NULL) {
		site_unknown(name, at, r->problems);
		skip_value(r);
		return;
	}
	if (r->seen[key - site_keys])
		site_problem(r->problems, at, "%s: expected it once, found it again", name);
	r->seen[key - site_keys] = true;
	take_value(r, key);
}

/* section: NULL at the top. Nesting ends there, so this calls itself once at most. */
static void take_mapping(struct reading *r, const char *section)
{
	while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
		char name[2 * NAME_MAX_BYTES];
		struct site_place at = r->place;

		if (r->event.type != YAML_SCALAR_EVENT) {
			site_problem(r->problems, &at, "expected a key, found %s", kind_of(r));
			skip_value(r);
			name[0] = '\0';
		} else {
			(void)snprintf(name, sizeof(name), "%s%s%.64s",
				       section != NULL ? section : "", section != NULL ? "." : "",
				       scalar(r));
		}
		if (!next(r))
			return;
		if (name[0] == '\0')
			skip_value(r);
		else if (section == NULL && is_section(name))
			take_section(r, name);
		else
			take_pair(r, name, &at);
	}
}

static void take_document(struct reading *r)
{
	bool found = false;

	while (next(r) && r->event.type != YAML_STREAM_END_EVENT) {
		bool value = r->event.type == YAML_MAPPING_START_EVENT ||
			     r->event.type == YAML_SEQUENCE_START_EVENT ||
			     r->event.type == YAML_SCALAR_EVENT ||
			     r->event.type == YAML_ALIAS_EVENT;

		if (r->event.type == YAML_MAPPING_START_EVENT && !found) {
			take_mapping(r, NULL);
		} else if (value) {
			site_problem(r->problems, &r->place,
				     "expected one mapping of keys, found %s",
				     found ? "another document" : "another value");
			skip_value(r);
		}
		found |= value;
	}
}

void site_take_text(struct site *site, const char *path, const char *text, size_t len,
		    struct site_problems *problems)
{
	struct reading r = { .site = site,
			     .problems = problems,
			     .place = { .source = SITE_FILE, .name = path } };

	(void)snprintf(site->path, sizeof(site->path), "%s", path);
	if (yaml_parser_initialize(&r.parser) == 0) {
		site_problem(problems, &r.place, "out of memory");
		return;
	}
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	take_document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
}
