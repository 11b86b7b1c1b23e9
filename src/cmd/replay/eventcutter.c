/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/replay/eventcutter.h"

#include "read/common/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1 << 16)
#define DEPTH_MAX 512
#define KEY_BYTES 32

enum part { PART_OTHER, PART_EVENTS, PART_ABOUT };

struct cut {
	struct eventcutter *of;
	const char *path;
	struct err *err;
	size_t off, depth;
	char stack[DEPTH_MAX];
	bool in_string, escaped;
	char key[KEY_BYTES]; /* the last string of the top object */
	size_t key_len;
	enum part part; /* of the value of the top object that is open now */
	bool collecting, too_long, found;
	size_t collect_depth; /* at which the object ends */
	struct str text;
};

static int complain(const struct cut *c, const char *expected, char found)
{
	return err_set(c->err, EINVAL, "%s: offset %zu: expected %s, found '%c'", c->path, c->off,
		       expected, found >= ' ' && found < 0x7f ? found : '?');
}

static enum part part_of(const struct cut *c, char opened)
{
	if (c->key_len == 11 && memcmp(c->key, "traceEvents", 11) == 0 && opened == '[')
		return PART_EVENTS;
	if (c->key_len == 15 && memcmp(c->key, "distributedInfo", 15) == 0 && opened == '{')
		return PART_ABOUT;
	return PART_OTHER;
}

static void begin_object(struct cut *c)
{
	c->collecting = true;
	c->too_long = false;
	c->collect_depth = c->depth;
	c->text.len = 0;
}

static int open_bracket(struct cut *c, char bracket)
{
	if (c->depth == DEPTH_MAX)
		return complain(c, "at most 512 levels", bracket);
	if (c->depth == 0 && bracket == '[')
		c->part = PART_EVENTS;
	else if (c->depth == 1 && c->stack[0] == '{')
		c->part = part_of(c, bracket);
	c->stack[c->depth++] = bracket;
	c->found = c->found || c->part == PART_EVENTS;
	if (c->collecting || bracket != '{')
		return 0;
	if ((c->part == PART_EVENTS && c->depth == (c->stack[0] == '[' ? 2 : 3)) ||
	    (c->part == PART_ABOUT && c->depth == 2))
		begin_object(c);
	return 0;
}

static int end_object(struct cut *c)
{
	c->collecting = false;
	if (c->too_long) {
		c->of->dropped++;
		return 0;
	}
	if (str_error(&c->text) < 0)
		return err_set(c->err, ENOMEM, "%s: out of memory", c->path);
	return c->of->take(c->of->arg, c->part == PART_EVENTS, str_borrow(&c->text), c->text.len,
			   c->err);
}

static int close_bracket(struct cut *c, char bracket)
{
	const char opened = bracket == '}' ? '{' : '[';

	if (c->depth == 0 || c->stack[c->depth - 1] != opened)
		return complain(c, "another bracket", bracket);
	if (c->collecting && c->depth == c->collect_depth) {
		int error = end_object(c);

		if (error < 0)
			return error;
	}
	c->depth--;
	return 0;
}

static void take_string_char(struct cut *c, char ch)
{
	if (c->escaped) {
		c->escaped = false;
	} else if (ch == '\\') {
		c->escaped = true;
	} else if (ch == '"') {
		c->in_string = false;
		return;
	}
	if (c->depth == 1 && c->key_len < KEY_BYTES)
		c->key[c->key_len++] = ch;
}

static int take_char(struct cut *c, char ch)
{
	if (c->in_string) {
		take_string_char(c, ch);
		return 0;
	}
	switch (ch) {
	case '"':
		c->in_string = true;
		if (c->depth == 1)
			c->key_len = 0;
		return 0;
	case '{':
	case '[':
		return open_bracket(c, ch);
	case '}':
	case ']':
		return close_bracket(c, ch);
	case '\0':
		return complain(c, "JSON", ch);
	default:
		return c->depth > 0 || strchr(" \t\r\n", ch) != NULL
			       ? 0
			       : complain(c, "a JSON document", ch);
	}
}

static int take_chunk(struct cut *c, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++, c->off++) {
		const bool was_collecting = c->collecting;
		int error;

		if (c->collecting && c->text.len < c->of->bytes_max)
			str_append_char(&c->text, data[i]);
		else if (c->collecting)
			c->too_long = true;
		error = take_char(c, data[i]);
		if (error < 0)
			return error;
		if (c->collecting && !was_collecting)
			str_append_char(&c->text, data[i]);
	}
	return 0;
}

static int finish(const struct cut *c)
{
	if (c->depth > 0 || c->in_string)
		return err_set(c->err, EINVAL,
			       "%s: offset %zu: expected the end of the JSON document, found the "
			       "end of the file",
			       c->path, c->off);
	if (!c->found)
		return err_set(c->err, EINVAL,
			       "%s: offset 0: expected a trace of torch.profiler with "
			       "\"traceEvents\", found none",
			       c->path);
	return 0;
}

int eventcutter_run(struct eventcutter *cutter, const char *path, struct input *input,
		    struct err *err)
{
	_cleanup_free_ char *chunk = malloc(CHUNK_BYTES);
	struct cut c = { .of = cutter, .path = path, .err = err };
	const char *why = "";
	ssize_t got = 0;
	int error = chunk != NULL ? 0 : err_set(err, ENOMEM, "%s: out of memory", path);

	while (error == 0 && (got = input_read(input, chunk, CHUNK_BYTES, &why)) > 0)
		error = take_chunk(&c, chunk, (size_t)got);
	if (error == 0 && got < 0)
		error = err_set(err, (int)-got, "%s: offset %zu: %s", path, c.off, why);
	if (error == 0)
		error = finish(&c);
	str_done(&c.text);
	return error;
}
