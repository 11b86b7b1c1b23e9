/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the JSON documents share: values are added without looking, a failure sticks and
 * is checked once. Numbers have six significant digits, so that one report is the same
 * bytes everywhere; foreign text becomes valid UTF-8.
 */
#pragma once

#include "base/str.h"
#include "model/event.h"

#include <jansson.h>

struct json_writer {
	int error; /* 0 or -ENOMEM */
};

/* Both take value, which may be NULL for want of memory. */
void jsonwriter_put(struct json_writer *w, json_t *object, const char *key, json_t *value);
void jsonwriter_push(struct json_writer *w, json_t *array, json_t *value);

/* NULL on want of memory, which the two above turn into the sticky error. */
json_t *jsonwriter_text(const char *s);
json_t *jsonwriter_ranks(const int *ranks, size_t cnt); /* "0-2,7" */
json_t *jsonwriter_number(double value);		/* null when not finite */
/* One number for each class by its name, the most important class first. */
json_t *jsonwriter_classes(struct json_writer *w, const double of_class[CLASS_CNT]);
json_t *jsonwriter_text_array(struct json_writer *w, const char *const *texts, size_t cnt);

/*
 * Prints root, which is freed, with a line end behind it. Returns 0 or -ENOMEM; out is
 * unchanged on failure.
 */
_must_check_ int jsonwriter_print(struct json_writer *w, json_t *root, struct str *out);
