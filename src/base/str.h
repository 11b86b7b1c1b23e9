/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing text buffer. A failed allocation sticks: later appends do nothing and str_error()
 * returns it, so a writer checks once at its end.
 */
#pragma once

#include "base/base.h"

struct str {
	char *data; /* NUL-terminated when len > 0; NULL when nothing was appended */
	size_t len, cap;
	int error; /* 0 or -ENOMEM */
};

void str_done(struct str *str);
void str_append(struct str *str, const char *text);
void str_append_len(struct str *str, const char *text, size_t len);
void str_append_char(struct str *str, char c);
void str_printf(struct str *str, const char *fmt, ...) _printf_(2, 3);

/* The text, "" when empty. Borrowed: valid until the next call on str. */
const char *str_borrow(const struct str *str);

/*
 * Ends a text appended since start. Returns 0 or the sticky error; on error the text is cut back to
 * start, so that no partial text is printed.
 */
int str_finish(struct str *str, size_t start);

/* The plural suffix of a word for cnt items: "%zu worker%s". */
static inline const char *plural(double cnt)
{
	return cnt == 1 ? "" : "s";
}

static inline int str_error(const struct str *str)
{
	return str->error;
}
