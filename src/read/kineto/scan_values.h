/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON values at the place of a scan: strings, keys, numbers, members of containers. */
#pragma once

#include "read/kineto/decimal.h"
#include "read/kineto/scan.h"

#include <string.h>

/* Containers inside containers. */
#define SCAN_MAX_DEPTH 512u

/* A string's text: borrowed, valid until the next call on the scan. */
struct scan_text {
	const char *text;
	size_t len;
};

/* Slow path of scan_string(): escapes, bytes beyond ASCII, the window's end. */
_must_check_ int scan_string_slow(struct scan *scan, struct scan_text *ret);

/* A string at a '"'. Unescaped, valid UTF-8, not NUL-terminated. */
_must_check_ static inline int scan_string(struct scan *scan, struct scan_text *ret)
{
	const uint8_t *text = scan->p + 1, *end = run_plain(scan->run, text);

	if (*end != '"')
		return scan_string_slow(scan, ret);
	scan->p = end + 1;
	*ret = (struct scan_text){ (const char *)text, (size_t)(end - text) };
	return 0;
}

/* Slow path of scan_key(). */
_must_check_ int scan_key_slow(struct scan *scan, struct scan_text *ret);

/* An object key and its colon. */
_must_check_ static inline int scan_key(struct scan *scan, struct scan_text *ret)
{
	const uint8_t *text = scan->p + 1, *end = run_plain(scan->run, text);

	if (*scan->p != '"' || *end != '"' || end[1] != ':')
		return scan_key_slow(scan, ret);
	scan->p = end + 2;
	*ret = (struct scan_text){ (const char *)text, (size_t)(end - text) };
	return 0;
}

/* A number at '-' or a digit. scan_plain.h reads the common forms faster. */
_must_check_ int scan_number(struct scan *scan, struct number *ret);

/* Any one value, validated in constant memory. */
_must_check_ int scan_skip(struct scan *scan);

/* Reports byte c where scan_member() expects a comma. Returns -errno. */
_must_check_ int scan_member_fail(struct scan *scan, int c, char closer);

/*
 * After '{' or '[' and after each member: positions on the next member. Returns
 * 1, 0 when the container was closed (consumed), -errno. *first starts as true.
 */
_must_check_ static inline int scan_member(struct scan *scan, char closer, bool *first)
{
	int c = scan_peek(scan);

	if (c == closer) {
		scan_next(scan);
		return 0;
	}
	if (*first) {
		*first = false;
		return c < 0 ? c : 1;
	}
	if (c != ',')
		return scan_member_fail(scan, c, closer);
	scan_next(scan);
	c = scan_peek(scan);
	if (c == closer)
		return scan_fail(scan, "a member after ','");
	return c < 0 ? c : 1;
}
