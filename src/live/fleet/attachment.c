/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/attachment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int attachment_parse(const void *data, size_t len, struct attachment *ret)
{
	char *line;

	ret->cnt = 0;
	if (len >= sizeof(ret->text))
		return -EMSGSIZE;
	memcpy(ret->text, data, len);
	ret->text[len] = '\0';
	if (strlen(ret->text) != len)
		return -EINVAL;
	line = strchr(ret->text, '\n');
	if (line == NULL ||
	    strncmp(ret->text, ATTACHMENT_ASKS "\n", strlen(ATTACHMENT_ASKS) + 1) != 0)
		return -EPROTO;
	for (line++; *line != '\0';) {
		char *end = line + strcspn(line, "\n"), *equals = strchr(line, '=');
		bool last = *end == '\0';

		if (equals == NULL || equals > end || ret->cnt >= ATTACHMENT_PAIRS_MAX)
			return -EINVAL;
		*end = *equals = '\0';
		ret->pairs[ret->cnt++] = (struct attachment_pair){ line, equals + 1 };
		line = last ? end : end + 1;
	}
	return 0;
}

const char *attachment_find(const struct attachment *attachment, const char *name)
{
	for (size_t i = 0; i < attachment->cnt; i++) {
		const struct attachment_pair *pair = &attachment->pairs[i];

		if (strcmp(pair->name, name) == 0)
			return pair->value[0] != '\0' ? pair->value : NULL;
	}
	return NULL;
}

int attachment_number(const struct attachment *attachment, const char *name)
{
	const char *text = attachment_find(attachment, name);
	char *end;
	long value;

	if (text == NULL || text[0] < '0' || text[0] > '9' || strlen(text) > 8)
		return -1;
	value = strtol(text, &end, 10);
	return *end == '\0' ? (int)value : -1;
}

static size_t written(int len, size_t size)
{
	return len < 0 ? 0 : MIN((size_t)len, size - 1);
}

size_t attachment_write_yes(char *ret, size_t size, const char *socket, const char *dir,
			    const char *agent)
{
	return written(snprintf(ret, size, "perftracker-attached 1\nsocket=%s\ndir=%s\nagent=%s\n",
				socket, dir, agent),
		       size);
}

size_t attachment_write_no(char *ret, size_t size, const char *why)
{
	return written(snprintf(ret, size, "perftracker-refused 1\nwhy=%s\n", why), size);
}
