/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/unescape.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

size_t utf8_len(const uint8_t *p, size_t len)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t need;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	need = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	/* No overlong forms, no surrogates, nothing above U+10FFFF. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (len < need || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return need;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Value of the four digits at p, -1 when they are not all hexadecimal. */
static int hex4(const uint8_t *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* Appends a code point as UTF-8. */
static void append_code(struct str *str, uint32_t code)
{
	char out[4];
	size_t len = 0;

	if (code < 0x80) {
		out[len++] = (char)code;
	} else if (code < 0x800) {
		out[len++] = (char)(0xc0 | code >> 6);
		out[len++] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		out[len++] = (char)(0xe0 | code >> 12);
		out[len++] = (char)(0x80 | (code >> 6 & 0x3f));
		out[len++] = (char)(0x80 | (code & 0x3f));
	} else {
		out[len++] = (char)(0xf0 | code >> 18);
		out[len++] = (char)(0x80 | (code >> 12 & 0x3f));
		out[len++] = (char)(0x80 | (code >> 6 & 0x3f));
		out[len++] = (char)(0x80 | (code & 0x3f));
	}
	str_append_len(str, out, len);
}

/* A checked \u escape at p[len]. Returns its length; *bad on a lone surrogate. */
static size_t append_unicode(struct str *str, const uint8_t *p, size_t len, bool *bad)
{
	uint32_t code = (uint32_t)hex4(p + 2), low;

	if (code < 0xd800 || code > 0xdfff) {
		/* A zero byte would end the text for everyone who prints it. */
		if (code == 0)
			str_append(str, REPLACEMENT);
		else
			append_code(str, code);
		return 6;
	}
	if (code < 0xdc00 && len >= 12 && p[6] == '\\' && p[7] == 'u') {
		low = (uint32_t)hex4(p + 8);
		if (low >= 0xdc00 && low <= 0xdfff) {
			append_code(str, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
			return 12;
		}
	}
	*bad = true;
	str_append(str, REPLACEMENT);
	return 6;
}

/* A checked escape at p[len]. Returns its length. */
static size_t append_escape(struct str *str, const uint8_t *p, size_t len, bool *bad)
{
	static const char codes[] = "bfnrt", values[] = "\b\f\n\r\t";
	const char *code;

	if (p[1] == 'u')
		return append_unicode(str, p, len, bad);
	code = strchr(codes, p[1]);
	str_append_char(str, code != NULL ? values[code - codes] : (char)p[1]);
	return 2;
}

bool unescape(struct str *str, const uint8_t *text, size_t len)
{
	bool bad = false;

	str->len = 0;
	for (size_t i = 0; i < len;) {
		size_t n;

		if (text[i] == '\\') {
			i += append_escape(str, text + i, len - i, &bad);
			continue;
		}
		n = utf8_len(text + i, len - i);
		bad |= n == 0;
		if (n == 0)
			str_append(str, REPLACEMENT);
		else
			str_append_len(str, (const char *)text + i, n);
		i += MAX(n, (size_t)1);
	}
	return bad;
}
