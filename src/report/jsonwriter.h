/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the JSON documents: callers add values without checking; the first error is kept
 * in the writer and checked once. Numbers have six significant digits, so that a report is
 * the same bytes on every machine; foreign text becomes valid UTF-8.
 */
#pragma once

#include "base/str.h"
#include "model/event.h"

#include <jansson.h>

struct json_writer {
	int error; /* 0 or -ENOMEM */
};

/* Both take ownership of value, which may be NULL when memory ran out. */
void jsonwriter_put(struct json_writer *w, json_t *object, const char *key, json_t *value);
void jsonwriter_push(struct json_writer *w, json_t *array, json_t *value);

/* NULL: null. */
void jsonwriter_put_text(struct json_writer *w, json_t *object, const char *key, const char *text);

/* All return NULL when memory ran out, which the two functions above record as an error. */
json_t *jsonwriter_text(const char *s);
json_t *jsonwriter_ranks(const int *ranks, size_t cnt); /* "0-2,7" */
json_t *jsonwriter_number(double value);		/* null when not finite */
/* One number for each class by its name, the most important class first. */
json_t *jsonwriter_classes(struct json_writer *w, const double of_class[CLASS_CNT]);
json_t *jsonwriter_text_array(struct json_writer *w, const char *const *texts, size_t cnt);

/*
 * Prints root and a line end, and frees root. Returns 0 or -ENOMEM; out is
 * unchanged on failure.
 */
_must_check_ int jsonwriter_print(struct json_writer *w, json_t *root, struct str *out);
