/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jsonwriter.h"

#include "base/text/clean.h"
#include "model/rankset.h"

#include <errno.h>
#include <math.h>

void jsonwriter_put(struct json_writer *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) != 0)
		w->error = -ENOMEM;
}

void jsonwriter_push(struct json_writer *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) != 0)
		w->error = -ENOMEM;
}

json_t *jsonwriter_text(const char *s)
{
	_cleanup_(str_done) struct str mended = { 0 };

	clean_append_utf8(&mended, s);
	return str_error(&mended) == 0 ? json_stringn(str_borrow(&mended), mended.len) : NULL;
}

void jsonwriter_put_text(struct json_writer *w, json_t *object, const char *key, const char *text)
{
	jsonwriter_put(w, object, key, text != NULL ? jsonwriter_text(text) : json_null());
}

json_t *jsonwriter_ranks(const int *ranks, size_t cnt)
{
	_cleanup_(str_done) struct str out = { 0 };

	rankset_format(&out, ranks, cnt);
	return str_error(&out) == 0 ? json_stringn(str_borrow(&out), out.len) : NULL;
}

json_t *jsonwriter_number(double value)
{
	if (!isfinite(value))
		return json_null();
	return json_real(value == 0.0 ? 0.0 : value); /* no "-0.0" */
}

json_t *jsonwriter_classes(struct json_writer *w, const double of_class[CLASS_CNT])
{
	json_t *object = json_object();

	for (int class = CLASS_CNT - 1; class >= 0; class --)
		jsonwriter_put(w, object, event_class_name((enum event_class) class),
			       jsonwriter_number(of_class[class]));
	return object;
}

json_t *jsonwriter_text_array(struct json_writer *w, const char *const *texts, size_t cnt)
{
	json_t *array = json_array();

	for (size_t i = 0; i < cnt; i++)
		jsonwriter_push(w, array, jsonwriter_text(texts[i]));
	return array;
}

static int append_chunk(const char *chunk, size_t len, void *data)
{
	struct str *out = data;

	str_append_len(out, chunk, len);
	return str_error(out) == 0 ? 0 : -1;
}

int jsonwriter_print(struct json_writer *w, json_t *root, struct str *out)
{
	size_t start = out->len;

	if (w->error == 0 && json_dump_callback(root, append_chunk, out,
						JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
		w->error = -ENOMEM;
	json_decref(root);
	str_append_char(out, '\n');
	if (w->error == 0)
		w->error = str_error(out);
	if (w->error != 0 && out->len > start) {
		out->len = start;
		out->data[start] = '\0';
	}
	return w->error;
}
