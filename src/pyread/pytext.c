/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pytext.h"

#include <string.h>

/* PyASCIIObject, in all versions. */
enum { LENGTH = 16, STATE = 32, HEADER = 40, CHARS = 256 };

struct text {
	uintptr_t data;
	size_t length; /* in characters of `kind` bytes */
	size_t kind;
};

static bool find(const struct selfmem *mem, const struct pylayout *layout, uintptr_t object,
		 struct text *ret)
{
	unsigned char bytes[HEADER];
	uint32_t state;
	bool ascii;

	if (!selfmem_read(mem, object, bytes, sizeof(bytes)))
		return false;
	/* Bit fields: 2 interned, 3 kind, 1 compact, 1 ascii. */
	state = pylayout_int(bytes, STATE) >> 2;
	ascii = (state >> 4 & 1) != 0;
	*ret = (struct text){
		.data = object + (ascii ? layout->str_ascii : layout->str_compact),
		.length = pylayout_word(bytes, LENGTH),
		.kind = state & 7,
	};
	return (state >> 3 & 1) != 0 && (ret->kind == 1 || ret->kind == 2 || ret->kind == 4);
}

static uint32_t char_at(const unsigned char *bytes, size_t kind)
{
	uint16_t half;

	if (kind == 1)
		return bytes[0];
	if (kind == 4)
		return pylayout_int(bytes, 0);
	memcpy(&half, bytes, sizeof(half));
	return half;
}

/* Returns the number of bytes, 1 to 4. What UTF-8 can't have (a lone surrogate) becomes '?'. */
static size_t put_utf8(uint32_t c, char ret[static 4])
{
	static const unsigned char LEAD[] = { 0, 0xc0, 0xe0, 0xf0 };
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		ret[0] = '?';
		return 1;
	}
	ret[0] = (char)(LEAD[more] | c >> (6 * more));
	for (size_t i = 1; i <= more; i++)
		ret[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	return more + 1;
}

static bool inside_char(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* utf8[used] is followed by a NUL, so that no cut is inside the text. */
static void cut(const char *utf8, size_t used, enum pytext_part part, char *ret, size_t size)
{
	size_t begin = 0;

	if (used >= size && part == PYTEXT_END)
		for (begin = used - (size - 1); inside_char(utf8[begin]);)
			begin++;
	if (used >= size && part == PYTEXT_START)
		for (used = size - 1; inside_char(utf8[used]);)
			used--;
	memcpy(ret, utf8 + begin, used - begin);
	ret[used - begin] = '\0';
}

bool pytext_copy(const struct selfmem *mem, const struct pylayout *layout, uintptr_t object,
		 enum pytext_part part, char *ret, size_t size)
{
	unsigned char bytes[4 * CHARS];
	char utf8[4 * CHARS + 1];
	struct text text;
	size_t cnt, used = 0;

	if (!find(mem, layout, object, &text))
		return false;
	cnt = MIN(text.length, (size_t)CHARS);
	if (part == PYTEXT_END)
		text.data += (text.length - cnt) * text.kind;
	if (cnt > 0 && !selfmem_read(mem, text.data, bytes, cnt * text.kind))
		return false;
	for (size_t i = 0; i < cnt; i++)
		used += put_utf8(char_at(bytes + i * text.kind, text.kind), utf8 + used);
	utf8[used] = '\0';
	cut(utf8, used, part, ret, size);
	return true;
}
