/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/clean.h"

#include <string.h>

#define ELLIPSIS "..."

struct range {
	uint32_t first, last;
};

/* Characters that are invisible or move others: direction marks, separators, joiners, tags. */
static const struct range unsafe[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad },   { 0x061c, 0x061c },
	{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

static const struct range combining[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },
	{ 0x064b, 0x065f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
	{ 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
};

static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },	  { 0x3400, 0x4dbf },
	{ 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xac00, 0xd7a3 },	  { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe4f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },	  { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

size_t clean_decode(const char *p, uint32_t *ret)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)p[0];
	size_t len = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t c;

	if (len == 0 || lead > 0xf4)
		return 0;
	c = len == 1 ? lead : lead & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((unsigned char)p[i] & 0x3f);
	}
	if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return len;
}

/* Writes the shown form of the character at p into buf; returns bytes read. */
static size_t shown(const char *p, char buf[static 16], size_t *ret_len)
{
	static const char *const digits = "0123456789abcdef";
	uint32_t c = (unsigned char)*p;
	size_t len = clean_decode(p, &c), i = 0;
	int nibbles = len == 0 || c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;

	if (len > 0 && !in_ranges(c, unsafe, ARRAY_SIZE(unsafe))) {
		memcpy(buf, p, len);
		*ret_len = len;
		return len;
	}
	buf[i++] = '\\';
	if (c == '\n' || c == '\t' || c == '\r') {
		buf[i++] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
	} else {
		buf[i++] = nibbles == 2 ? 'x' : nibbles == 4 ? 'u' : 'U';
		while (nibbles-- > 0)
			buf[i++] = digits[c >> (4 * nibbles) & 15];
	}
	*ret_len = i;
	return len > 0 ? len : 1;
}

void clean_append(struct str *out, const char *text)
{
	char buf[16];
	size_t len;

	for (const char *p = text != NULL ? text : ""; *p != '\0';) {
		p += shown(p, buf, &len);
		str_append_len(out, buf, len);
	}
}

static size_t char_cells(const char *p, size_t *ret_len)
{
	uint32_t c = 0;
	size_t len = clean_decode(p, &c);

	*ret_len = len > 0 ? len : 1;
	if (c < 0x300)
		return 1;
	if (in_ranges(c, combining, ARRAY_SIZE(combining)))
		return 0;
	return in_ranges(c, wide, ARRAY_SIZE(wide)) ? 2 : 1;
}

size_t clean_cells(const char *text, size_t len)
{
	size_t cells = 0, step;

	for (size_t i = 0; i < len; i += step)
		cells += char_cells(text + i, &step);
	return cells;
}

size_t clean_prefix(const char *text, size_t len, size_t max_cells)
{
	size_t i = 0, step;

	while (i < len) {
		size_t cells = char_cells(text + i, &step);

		if (cells > max_cells)
			break;
		max_cells -= cells;
		i += step;
	}
	return MIN(i, len);
}

/* First byte of the longest suffix that fills at most max_cells. */
static size_t suffix_start(const char *text, size_t len, size_t max_cells)
{
	size_t start = 0, cells = clean_cells(text, len), step;

	while (start < len && cells > max_cells) {
		cells -= char_cells(text + start, &step);
		start += step;
	}
	return start;
}

void clean_append_short(struct str *out, const char *text, size_t max_cells)
{
	_cleanup_(str_done) struct str clean = { 0 };
	size_t room = max_cells - strlen(ELLIPSIS), head, tail;

	clean_append(&clean, text);
	if (clean.error != 0) {
		out->error = clean.error;
		return;
	}
	if (clean_cells(str_borrow(&clean), clean.len) <= max_cells) {
		str_append_len(out, str_borrow(&clean), clean.len);
		return;
	}
	head = clean_prefix(clean.data, clean.len, room - room / 2);
	tail = suffix_start(clean.data, clean.len, room / 2);
	str_append_len(out, clean.data, head);
	str_append(out, ELLIPSIS);
	str_append_len(out, clean.data + tail, clean.len - tail);
}

void clean_append_utf8(struct str *out, const char *text)
{
	uint32_t c;

	for (const char *p = text != NULL ? text : ""; *p != '\0';) {
		size_t len = clean_decode(p, &c);

		if (len > 0)
			str_append_len(out, p, len);
		else
			str_append(out, "\xef\xbf\xbd");
		p += len > 0 ? len : 1;
	}
}
