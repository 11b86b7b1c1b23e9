/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON tokens out of a text of any length through a window of fixed size. Strings, keys,
 * numbers and containers: scan_values.h.
 *
 * The window slides over the text; behind its last byte lie zero bytes, and a
 * zero byte is never valid JSON, so that inner loops need no bounds check: they
 * stop there and the slow path reads on. Runs of plain string bytes and of
 * spaces are crossed 16 or 32 bytes at a time. Every byte is validated (RFC
 * 8259: grammar, escapes, numbers, depth), also in values that are skipped.
 *
 * Some things are tolerated, because real writers produce them: invalid UTF-8 and lone surrogate
 * escapes in strings become U+FFFD and are counted; NaN, inf and Infinity are values of no type; a
 * byte order mark before the document or an event is a space.
 *
 * A failure fills the err given to scan_init() with
 * "<name>:<offset in the text>: expected ..., found ..." and is returned as a
 * negative errno by every function; after that the scan must not be used on.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "base/str.h"
#include "read/common/input.h"
#include "read/kineto/charspan.h"

/* A string or number that must be held at once. Strings that are skipped have no limit. */
#define SCAN_MAX_TOKEN_BYTES (1024u * 1024u)

struct scan {
	struct input *input;
	const char *name;
	struct err *err;
	uint8_t *buf; /* cap bytes and zero padding */
	size_t cap;
	const uint8_t *p;    /* next byte */
	const uint8_t *end;  /* end of the window's text: zero bytes follow */
	const uint8_t *mark; /* bytes from here on survive a refill; NULL: from p */
	run_fn *run;	     /* for long runs of plain string bytes */
	uint64_t buf_off;    /* offset of buf[0] in the text */
	uint64_t max_text_bytes;
	uint64_t bad_utf8_cnt; /* strings that were mended */
	struct str mended;     /* last unescaped or mended string */
	int failed;	       /* 0, or the error of the last refill */
	bool eof;
};

/*
 * Borrows input, name and err (err may be NULL) until scan_done(). window_bytes:
 * 0 for the default. Returns 0 or -ENOMEM.
 */
_must_check_ int scan_init(struct scan *scan, struct input *input, const char *name,
			   size_t window_bytes, struct err *err);
void scan_done(struct scan *scan);

/* Slow path of scan_peek(): more than one space, a control byte or the window's end. */
_must_check_ int scan_peek_slow(struct scan *scan);

/* Next byte that is not a space, not consumed; 0 at the end of the text; -errno. */
_must_check_ static inline int scan_peek(struct scan *scan)
{
	if (*scan->p > ' ')
		return *scan->p;
	if (*scan->p == ' ' && scan->p[1] > ' ')
		return *++scan->p;
	return scan_peek_slow(scan);
}

/* Consumes the byte that scan_peek() returned. */
static inline void scan_next(struct scan *scan)
{
	scan->p++;
}

/* Consumes byte order marks, which joined texts have. Returns 0 or -errno. */
_must_check_ int scan_skip_marks(struct scan *scan);

/* Writes the error line: what was expected at the next byte. Returns -EBADMSG. */
int scan_fail(struct scan *scan, const char *expected);

/* Consumes byte c or fails with expected. */
_must_check_ int scan_expect(struct scan *scan, char c, const char *expected);

/* Only spaces may follow. */
_must_check_ int scan_finish(struct scan *scan);

/* Offset of the next byte in the text. */
static inline uint64_t scan_offset(const struct scan *scan)
{
	return scan->buf_off + (uint64_t)(scan->p - scan->buf);
}
