/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/scan.h"

#include "read/kineto/scan_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Fits the second-level cache together with what the reader writes. */
#define WINDOW_BYTES (256u * 1024u)
#define MIN_WINDOW_BYTES 64u

int scan_init(struct scan *scan, struct input *input, const char *name, size_t window_bytes,
	      struct err *err)
{
	size_t cap = window_bytes == 0 ? WINDOW_BYTES : MAX(window_bytes, (size_t)MIN_WINDOW_BYTES);

	/* A string inside one window needs no check of its length. */
	cap = MIN(cap, (size_t)SCAN_MAX_TOKEN_BYTES);

	*scan = (struct scan){ .input = input, .name = name, .err = err, .cap = cap };
	scan->buf = malloc(cap + RUN_PAD);
	if (scan->buf == NULL)
		return -ENOMEM;
	memset(scan->buf, 0, RUN_PAD);
	scan->p = scan->end = scan->buf;
	scan->run = run_select();
	scan->max_text_bytes = UINT64_MAX;
	return 0;
}

void scan_done(struct scan *scan)
{
	free(scan->buf);
	str_done(&scan->mended);
	*scan = (struct scan){ 0 };
}

/* The byte at p, for the error line. */
static void describe(const struct scan *scan, char *buf, size_t cap)
{
	uint8_t c = *scan->p;

	if (scan->p == scan->end && scan->eof)
		(void)snprintf(buf, cap, "the end of the text");
	else if (c > ' ' && c < 0x7f)
		(void)snprintf(buf, cap, "'%c'", c);
	else
		(void)snprintf(buf, cap, "byte 0x%02x", c);
}

int scan_fail(struct scan *scan, const char *expected)
{
	char found[32];

	describe(scan, found, sizeof(found));
	return err_set(scan->err, EBADMSG, "%s: byte %" PRIu64 ": expected %s, found %s",
		       scan->name, scan_offset(scan), expected, found);
}

/* Twice the window, for a token that does not fit. */
static int window_grow(struct scan *scan)
{
	size_t cap = scan->cap * 2, p_off = (size_t)(scan->p - scan->buf);
	size_t end_off = (size_t)(scan->end - scan->buf);
	size_t mark_off = scan->mark != NULL ? (size_t)(scan->mark - scan->buf) : 0;
	uint8_t *grown = realloc(scan->buf, cap + RUN_PAD);

	if (grown == NULL)
		return err_set(scan->err, ENOMEM, "%s: out of memory", scan->name);
	scan->mark = scan->mark != NULL ? grown + mark_off : NULL;
	scan->p = grown + p_off;
	scan->end = grown + end_off;
	scan->buf = grown;
	scan->cap = cap;
	return 0;
}

/* Moves what must stay to the window's front. */
static void window_slide(struct scan *scan)
{
	const uint8_t *keep = scan->mark != NULL ? scan->mark : scan->p;
	size_t gone = (size_t)(keep - scan->buf), kept = (size_t)(scan->end - keep);

	if (kept > 0)
		memmove(scan->buf, keep, kept);
	scan->buf_off += gone;
	scan->p -= gone;
	scan->end -= gone;
	if (scan->mark != NULL)
		scan->mark -= gone;
}

static int input_failed(struct scan *scan, ssize_t error, const char *why)
{
	uint64_t off = scan->buf_off + (uint64_t)(scan->end - scan->buf);

	return err_set(scan->err, (int)-error, "%s: byte %" PRIu64 ": %s", scan->name, off, why);
}

int scan_token_too_long(struct scan *scan, uint64_t off)
{
	return err_set(scan->err, EMSGSIZE,
		       "%s: byte %" PRIu64
		       ": expected a name or number of at most %u bytes, found a longer one",
		       scan->name, off, SCAN_MAX_TOKEN_BYTES);
}

/* Brings more text behind end. Returns 1, 0 at the end of the text, -errno (also from then on). */
static int refill_window(struct scan *scan)
{
	const char *why;
	size_t kept;
	ssize_t n;
	int ret;

	window_slide(scan);
	kept = (size_t)(scan->end - scan->buf);
	if (kept > SCAN_MAX_TOKEN_BYTES)
		return scan_token_too_long(scan, scan->buf_off);
	if (kept > scan->cap / 2) {
		ret = window_grow(scan);
		if (ret < 0)
			return ret;
	}
	/* Also when the read fails: what lay here before must not be met again. */
	memset(scan->buf + kept, 0, RUN_PAD);
	n = input_read(scan->input, scan->buf + kept, scan->cap - kept, &why);
	if (n < 0)
		return input_failed(scan, n, why);
	scan->end += n;
	memset(scan->buf + kept + n, 0, RUN_PAD);
	scan->eof = n == 0;
	if (scan->buf_off + kept + (uint64_t)n > scan->max_text_bytes)
		return err_set(scan->err, EFBIG,
			       "%s: expected at most %" PRIu64 " bytes of text, found more",
			       scan->name, scan->max_text_bytes);
	return n > 0;
}

int scan_refill(struct scan *scan)
{
	int ret;

	if (scan->failed < 0 || scan->eof)
		return scan->failed;
	ret = refill_window(scan);
	scan->failed = MIN(ret, 0);
	return ret;
}

int scan_ensure(struct scan *scan, size_t need)
{
	while ((size_t)(scan->end - scan->p) < need) {
		int ret = scan_refill(scan);

		if (ret <= 0)
			return ret;
	}
	return 0;
}

int scan_peek_slow(struct scan *scan)
{
	for (;;) {
		uint8_t c = *scan->p;

		if (c > ' ')
			return c;
		if (c == ' ') {
			scan->p = run_spaces(scan->p);
		} else if (c == '\n') {
			/* Indented text: a line break and many spaces. */
			scan->p = run_spaces(scan->p + 1);
		} else if (c == '\r' || c == '\t') {
			scan->p++;
		} else if (c == 0 && scan->p == scan->end) {
			int ret = scan_refill(scan);

			if (ret <= 0)
				return ret;
		} else {
			/* A control byte, zero included: no token begins with it. */
			return 1;
		}
	}
}

int scan_expect(struct scan *scan, char c, const char *expected)
{
	int found = scan_peek(scan);

	if (found < 0)
		return found;
	if (found != c)
		return scan_fail(scan, expected);
	scan_next(scan);
	return 0;
}

int scan_skip_marks(struct scan *scan)
{
	static const uint8_t mark[] = { 0xef, 0xbb, 0xbf };
	int c;

	while ((c = scan_peek(scan)) == mark[0]) {
		int ret = scan_ensure(scan, sizeof(mark));

		if (ret < 0)
			return ret;
		if (memcmp(scan->p, mark, sizeof(mark)) != 0)
			return 0;
		scan->p += sizeof(mark);
	}
	return MIN(c, 0);
}

int scan_finish(struct scan *scan)
{
	int c = scan_peek(scan);

	if (c < 0)
		return c;
	return c == 0 ? 0 : scan_fail(scan, "the end of the text");
}
