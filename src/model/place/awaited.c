/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place/awaited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN " % in "

static const struct {
	const char *name, *prefix;
} kinds[AWAITED_BY_CNT] = {
	[AWAITED_LOADER] = { "the DataLoader's worker processes", "" },
	[AWAITED_THREAD] = { "other threads of the process", "thread, " },
	[AWAITED_CHILD] = { "its child processes", "child, " },
};

const char *awaited_name(enum awaited_by by)
{
	return kinds[by].name;
}

void awaited_write(const struct awaited *awaited, char *text, size_t size)
{
	(void)snprintf(text, size, "%s%.0f%s%s", kinds[awaited->by].prefix, 100 * awaited->frac,
		       BETWEEN, awaited->place);
}

bool awaited_read(const char *text, struct awaited *ret)
{
	enum awaited_by by = AWAITED_LOADER;
	char *end;
	double pct;

	for (int i = AWAITED_LOADER + 1; i < AWAITED_BY_CNT; i++) {
		if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
			by = (enum awaited_by)i;
	}
	text += strlen(kinds[by].prefix);
	pct = strtod(text, &end);
	if (end == text || !(pct >= 0 && pct <= 100) || strncmp(end, BETWEEN, strlen(BETWEEN)) != 0)
		return false;
	*ret = (struct awaited){ by, pct / 100, end + strlen(BETWEEN) };
	return true;
}
