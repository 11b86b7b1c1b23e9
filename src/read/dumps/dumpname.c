/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumps_parts.h"

#include <ctype.h>
#include <string.h>

/* The number that begins at p, -1: none or too large. */
static int number_at(const char *p)
{
	int value = 0;

	if (!isdigit((unsigned char)*p))
		return -1;
	for (; isdigit((unsigned char)*p); p++) {
		if (value > DUMPS_RANKS_MAX / 10)
			return -1;
		value = value * 10 + (*p - '0');
	}
	return value;
}

static int number_behind(const char *name, const char *word)
{
	int found = -1;

	for (const char *p = strstr(name, word); p != NULL; p = strstr(p + 1, word)) {
		const char *q = p + strlen(word);
		int number;

		q += strspn(q, "-_ ");
		number = number_at(q);
		found = number >= 0 ? number : found;
	}
	return found;
}

/* The last number in it. */
static int last_number(const char *name)
{
	int found = -1;

	for (const char *p = name; *p != '\0'; p++)
		if (isdigit((unsigned char)*p) && (p == name || !isdigit((unsigned char)p[-1])))
			found = number_at(p);
	return found;
}

int dumpname_rank(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	const int found = number_behind(name, "rank");

	return found >= 0 ? found : last_number(name);
}
