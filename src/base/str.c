/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/vec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void str_done(struct str *str)
{
	free(str->data);
	*str = (struct str){ 0 };
}

static bool str_room(struct str *str, size_t extra)
{
	size_t need;

	if (str->error != 0)
		return false;
	if (__builtin_add_overflow(str->len, extra, &need) || need == SIZE_MAX) {
		str->error = -ENOMEM;
		return false;
	}
	str->error = vec_reserve_bytes((void **)&str->data, &str->cap, need + 1, 1);
	return str->error == 0;
}

void str_append_len(struct str *str, const char *text, size_t len)
{
	if (!str_room(str, len))
		return;
	memcpy(str->data + str->len, text, len);
	str->len += len;
	str->data[str->len] = '\0';
}

void str_append(struct str *str, const char *text)
{
	str_append_len(str, text, strlen(text));
}

void str_append_char(struct str *str, char c)
{
	str_append_len(str, &c, 1);
}

void str_printf(struct str *str, const char *fmt, ...)
{
	size_t room = str->error == 0 ? str->cap - str->len : 0;
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(room > 0 ? str->data + str->len : NULL, room, fmt, ap);
	va_end(ap);
	/* Formatted a second time only when the room did not suffice. */
	if (len >= 0 && (size_t)len >= room && str_room(str, (size_t)len))
		len = vsnprintf(str->data + str->len, (size_t)len + 1, fmt, again);
	va_end(again);
	if (len >= 0 && str->error == 0)
		str->len += (size_t)len;
	else if (room > 0)
		str->data[str->len] = '\0'; /* without the part that was written */
}

const char *str_borrow(const struct str *str)
{
	return str->data != NULL ? str->data : "";
}

int str_finish(struct str *str, size_t start)
{
	if (str_error(str) == 0)
		return 0;
	if (str->len > start) {
		str->len = start;
		str->data[start] = '\0';
	}
	return str_error(str);
}
