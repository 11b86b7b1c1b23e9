/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table gives the fields of a finding to all formats: key, type and description in JSON
 * and its schema; title and width of the columns in the tables of text and HTML. A new field
 * or column is one row of finding_fields.c. Keys come in the order of the rows.
 */
#pragma once

#include "base/str.h"
#include "model/finding.h"
#include "report/jsonwriter.h"

enum field_type {
	FIELD_TEXT,	 /* const char * */
	FIELD_TEXTS,	 /* const char *const *, with a count */
	FIELD_JOINED,	 /* the same as one string, joined by commas */
	FIELD_RANKS,	 /* const int *, with a count: "0-2,7" */
	FIELD_COUNT,	 /* size_t */
	FIELD_NUMBER,	 /* double; null when not finite */
	FIELD_VALUE,	 /* struct finding_value; null when absent */
	FIELD_WORD,	 /* what word() returns */
	FIELD_OBJECT,	 /* the fields of inner */
	FIELD_EXPLAINED, /* struct finding_explained; without a stall window the key is left out */
};

struct finding_field {
	const char *key;
	const char *about; /* description in the schema; may be NULL */
	const char *rules; /* further members of the schema, as JSON; may be NULL */
	enum field_type type;
	size_t off, cnt_off;
	const char *(*word)(const struct finding *finding);
	const struct finding_field *inner;
	size_t inner_cnt;

	const char *title; /* of its column in tables; NULL: none */
	size_t cells;	   /* width of the column in text */
	bool is_number;	   /* aligned to the right in HTML */
	bool of_resource;  /* column is left out when no finding has a utilization */
	/* cells: a hint where the phrase can be shorter. */
	void (*phrase)(struct str *out, const struct finding *finding, size_t cells);
};

/* The finding as a JSON object; NULL is an error that w has kept. */
json_t *finding_fields_json(struct json_writer *w, const struct finding *finding);

/* The JSON schema of that object; NULL for want of memory. The caller drops it. */
json_t *finding_fields_schema(void);

/*
 * The column after another one, or the first one after NULL; NULL behind the last. utilization:
 * whether a finding of the report has one (phrase_any_utilization()).
 */
const struct finding_field *finding_fields_column(const struct finding_field *after,
						  bool utilization);
