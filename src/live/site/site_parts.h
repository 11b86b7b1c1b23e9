/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the site's configuration: its table of keys, and what reads their values. */
#pragma once

#include "live/site/site.h"

#include <stddef.h>

enum site_type {
	SITE_TEXT,
	SITE_PATH, /* absolute */
	SITE_LIST, /* one text, or a list that becomes one with commas */
	SITE_NUMBER,
	SITE_BOOL,
	SITE_WORD, /* stored as its index */
};

struct site_key {
	const char *name; /* "cluster", "bus.url" */
	enum site_type type;
	size_t off;	    /* in struct site_values */
	uint32_t low, high; /* SITE_NUMBER */
	const char *words;  /* SITE_WORD: "environment|all" */
	const char *preset; /* as in a file */
};

extern const struct site_key site_keys[];
extern const size_t site_key_cnt;

/* Where a value comes from. */
struct site_place {
	enum site_source source;
	const char *name; /* path of the file, name of the variable, or "--set" */
	unsigned line, column;
};

/* The key of this name; NULL: there is no such key. */
const struct site_key *sitekeys_find(const char *name);

/* Sets the key, or says what is wrong with the text. */
void site_set(struct site *site, const struct site_key *key, const char *text,
	      const struct site_place *place, struct site_problems *problems);

/* Says that there is no such key, and which one may have been meant. */
void site_unknown(const char *name, const struct site_place *place, struct site_problems *problems);

void site_problem(struct site_problems *problems, const struct site_place *place, const char *fmt,
		  ...) _printf_(3, 4);
