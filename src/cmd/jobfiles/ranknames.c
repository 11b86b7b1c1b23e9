/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfiles/ranknames.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RANK_MAX (1 << 20)

/* The number behind word in name[len]; -1: none. */
static int number_behind(const char *word, const char *name, size_t len)
{
	size_t word_len = strlen(word);

	for (size_t i = 0; i + word_len < len; i++) {
		const char *digits = name + i + word_len, *end = name + len;
		long rank = 0;

		if (strncasecmp(name + i, word, word_len) != 0)
			continue;
		if (*digits == '-' || *digits == '_' || *digits == '.')
			digits++;
		if (digits == end || !isdigit((unsigned char)*digits))
			continue;
		for (; digits < end && isdigit((unsigned char)*digits) && rank < RANK_MAX; digits++)
			rank = rank * 10 + (*digits - '0');
		return rank < RANK_MAX ? (int)rank : -1;
	}
	return -1;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

int ranknames_of_file(const char *path)
{
	static const char *const words[] = { "rank", "worker", "proc" };
	const char *name = base_of(path);
	int rank = -1;

	for (size_t i = 0; i < ARRAY_SIZE(words) && rank < 0; i++)
		rank = number_behind(words[i], name, strlen(name));
	return rank;
}

/* Not "worker3": hosts of several ranks are named so. */
int ranknames_of_folder(const char *path)
{
	const char *end = base_of(path);
	int rank = -1;

	while (end > path && rank < 0) {
		const char *name = --end;

		while (name > path && name[-1] != '/')
			name--;
		rank = number_behind("rank", name, (size_t)(end - name));
		end = name;
	}
	return rank;
}

struct ranknames_process ranknames_process_of(const char *path)
{
	const char *name = base_of(path), *end;
	struct ranknames_process ret = { .host = name };

	for (const char *mark = strchr(name, '_'); mark != NULL; mark = strchr(mark + 1, '_')) {
		size_t pid_len = strspn(mark + 1, "0123456789");

		end = mark + 1 + pid_len;
		if (mark == name || pid_len == 0 || pid_len > 9 || *end != '.' ||
		    strspn(end + 1, "0123456789") < 9)
			continue;
		ret.host_len = (size_t)(mark - name);
		ret.pid = strtol(mark + 1, NULL, 10);
		break;
	}
	return ret;
}
