/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/mapping.h"

#include <string.h>

/* The number at *text; *text moves behind it and the byte that follows. False: there is none. */
static bool number(const char **text, uint64_t base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	for (;; p++) {
		uint64_t digit = base;

		if (*p >= '0' && *p <= '9')
			digit = (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (uint64_t)(*p - 'a' + 10);
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	if (p == *text || *p == '\0')
		return false;
	*text = p + 1;
	*ret = value;
	return true;
}

bool mapping_parse(const char *text, struct mapping *ret)
{
	uint64_t start, end, major, minor;
	struct mapping mapping = { 0 };

	if (!number(&text, 16, &start) || !number(&text, 16, &end) || strlen(text) < 5)
		return false;
	mapping.readable = text[0] == 'r';
	mapping.writable = text[1] == 'w';
	mapping.executable = text[2] == 'x';
	text += 5;
	if (!number(&text, 16, &mapping.offset) || !number(&text, 16, &major) ||
	    !number(&text, 16, &minor) || !number(&text, 10, &mapping.inode))
		return false;
	mapping.start = (uintptr_t)start;
	mapping.end = (uintptr_t)end;
	mapping.device = major << 32 | minor;
	while (*text == ' ')
		text++;
	mapping.path = text;
	*ret = mapping;
	return true;
}
