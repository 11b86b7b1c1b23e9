/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <string.h>

struct hang_record dump_record(const char *source)
{
	return (struct hang_record){
		.rank = -1,
		.host = "",
		.source = source,
		.stack = "",
		.leaf = "",
		.awaited = "",
		.ended = "",
		.says = "",
		.child = "",
	};
}

const char *dumpjson_text(struct arena *arena, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? arena_strdup(arena, text) : "";
}

int64_t dumpjson_number(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool dumpjson_flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

json_t *dumpjson_load(const struct dumptext *text, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(text->data, text->len, JSON_ALLOW_NUL, &why);

	if (root == NULL)
		(void)err_set(err, EINVAL, "%s: line %d, offset %d: expected JSON, found %s",
			      text->path, why.line, why.position, why.text);
	return root;
}
