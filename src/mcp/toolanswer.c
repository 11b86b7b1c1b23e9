/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/toolanswer.h"

#include "report/prompt/fence.h"

#include <string.h>

#define BYTES_MAX (TOOLANSWER_TOKENS_MAX * TOOLANSWER_TOKEN_BYTES)
/* For the sentence, the fence, and what is put behind a list: cursor, next, what was left out. */
#define SPARE_BYTES 1000u

void toolanswer_init(struct toolanswer *answer)
{
	*answer = (struct toolanswer){ .data = json_object() };
}

void toolanswer_done(struct toolanswer *answer)
{
	json_decref(answer->data);
	str_done(&answer->says);
	*answer = (struct toolanswer){ .data = NULL };
}

/* Bytes of value as it is printed, with a comma. */
static size_t bytes_of(const json_t *value)
{
	size_t len = 0;
	_cleanup_free_ char *line = value != NULL ? fence_line(value, &len) : NULL;

	return line != NULL ? len : 0;
}

void toolanswer_put(struct toolanswer *answer, const char *key, json_t *value)
{
	answer->used += strlen(key) + 4 + bytes_of(value);
	jsonwriter_put(&answer->w, answer->data, key, value);
}

bool toolanswer_push(struct toolanswer *answer, const char *key, json_t *value)
{
	json_t *list = json_object_get(answer->data, key);
	size_t len = bytes_of(value);

	if (list == NULL) {
		toolanswer_put(answer, key, json_array());
		list = json_object_get(answer->data, key);
	}
	if (answer->used + len + SPARE_BYTES > BYTES_MAX) {
		json_decref(value);
		return false;
	}
	answer->used += len;
	jsonwriter_push(&answer->w, list, value);
	return true;
}

void toolanswer_next(struct toolanswer *answer, const char *tool, const char *key,
		     const char *value, const char *key2, const char *value2)
{
	json_t *arguments = json_object(), *next = json_object();

	if (value != NULL)
		jsonwriter_put(&answer->w, arguments, key, toolanswer_text(value));
	if (value2 != NULL)
		jsonwriter_put(&answer->w, arguments, key2, toolanswer_text(value2));
	jsonwriter_put_text(&answer->w, next, "tool", tool);
	jsonwriter_put(&answer->w, next, "arguments", arguments);
	toolanswer_put(answer, "next", next);
}

json_t *toolanswer_text(const char *text)
{
	return text != NULL ? fence_short_text(text, TOOLANSWER_TEXT_BYTES) : json_null();
}

json_t *toolanswer_ranks(const char *text)
{
	size_t len = TOOLANSWER_TEXT_BYTES;

	if (text == NULL || strlen(text) <= len || strspn(text, "0123456789-,") != strlen(text))
		return toolanswer_text(text);
	while (len > 0 && text[len - 1] != ',')
		len--;
	return json_sprintf("%.*s...", (int)len, text);
}

json_t *toolanswer_text_of(const char *key, const char *text)
{
	const char *at = strstr(key, "ranks");
	bool ranks = at != NULL && (at[5] == '\0' || strcmp(at, "ranks_missing") == 0);

	return ranks ? toolanswer_ranks(text) : toolanswer_text(text);
}

void toolanswer_copy(struct json_writer *w, json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys != NULL; keys++) {
		json_t *value = json_object_get(from, *keys);

		if (json_is_string(value))
			jsonwriter_put(w, to, *keys,
				       toolanswer_text_of(*keys, json_string_value(value)));
		else if (value != NULL && !json_is_object(value) && !json_is_array(value))
			jsonwriter_put(w, to, *keys, json_incref(value));
	}
}

static json_t *result(struct json_writer *w, const char *text, bool failed)
{
	json_t *ret = json_object(), *block = json_object(), *content = json_array();

	jsonwriter_put_text(w, block, "type", "text");
	jsonwriter_put_text(w, block, "text", text);
	jsonwriter_push(w, content, block);
	jsonwriter_put(w, ret, "content", content);
	jsonwriter_put(w, ret, "isError", json_boolean(failed));
	return ret;
}

static json_t *checked(struct json_writer *w, json_t *root)
{
	if (w->error == 0)
		return root;
	json_decref(root);
	return NULL;
}

json_t *toolanswer_take(struct toolanswer *answer)
{
	struct str text = { 0 };
	size_t len = 0;
	_cleanup_free_ char *line = fence_line(answer->data, &len);
	json_t *ret;

	str_append(&text, str_borrow(&answer->says));
	str_append(&text, "\n```json\n");
	str_append_len(&text, line != NULL ? line : "", len);
	str_append(&text, "```\n");
	if (line == NULL || str_error(&text) != 0 || str_error(&answer->says) != 0)
		answer->w.error = -1;
	ret = result(&answer->w, str_borrow(&text), false);
	jsonwriter_put(&answer->w, ret, "structuredContent", json_incref(answer->data));
	ret = checked(&answer->w, ret);
	str_done(&text);
	toolanswer_done(answer);
	return ret;
}

json_t *toolanswer_failure(const char *why)
{
	struct json_writer w = { 0 };

	return checked(&w, result(&w, why, true));
}
