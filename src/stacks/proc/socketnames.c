/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/socketnames.h"

#include "stacks/proc/taskfiles.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { LIST_BYTES = 1 << 20, LINE_BYTES = 256, STATE_LISTEN = 10 };

/* "0100007F:1F90", words in the byte order of the machine, as "127.0.0.1:8080". */
static void format_address(const char *hex, unsigned int port, char *ret, size_t size)
{
	const bool six = strlen(hex) == 32;
	uint32_t words[4] = { 0 };
	char text[INET6_ADDRSTRLEN] = "?";

	for (size_t i = 0; i < (six ? 4 : 1); i++) {
		char word[9] = "";

		memcpy(word, hex + 8 * i, 8);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	if (six && words[0] == 0 && words[1] == 0 && words[2] == htonl(0xffff)) {
		(void)inet_ntop(AF_INET, &words[3], text, sizeof(text));
		(void)snprintf(ret, size, "%s:%u", text, port);
		return;
	}
	(void)inet_ntop(six ? AF_INET6 : AF_INET, words, text, sizeof(text));
	(void)snprintf(ret, size, six ? "[%s]:%u" : "%s:%u", text, port);
}

/*
 * Copies the line at *text, cut to fit, and moves *text behind it: sscanf() measures its whole text
 * each time. False: there is none.
 */
static bool take_line(const char **text, char *ret, size_t size)
{
	const size_t len = strcspn(*text, "\n"), kept = MIN(len, size - 1);

	if (**text == '\0')
		return false;
	memcpy(ret, *text, kept);
	ret[kept] = '\0';
	*text += len;
	*text += **text == '\n';
	return true;
}

bool socketnames_parse_tcp(const char *text, unsigned long inode, char *ret, size_t size)
{
	char line[LINE_BYTES];

	while (take_line(&text, line, sizeof(line))) {
		char local[33], remote[33], a[64], b[64];
		unsigned int local_port, remote_port, state;
		unsigned long found;

		if (sscanf(line,
			   " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %2x %*s %*s %*s %*u %*u %lu",
			   local, &local_port, remote, &remote_port, &state, &found) != 6 ||
		    found != inode || (strlen(local) != 8 && strlen(local) != 32) ||
		    strlen(remote) != strlen(local))
			continue;
		format_address(local, local_port, a, sizeof(a));
		format_address(remote, remote_port, b, sizeof(b));
		if (state == STATE_LISTEN)
			(void)snprintf(ret, size, "tcp listening at %s", a);
		else
			(void)snprintf(ret, size, "tcp %s to %s", a, b);
		return true;
	}
	return false;
}

bool socketnames_parse_unix(const char *text, unsigned long inode, char *ret, size_t size)
{
	char line[LINE_BYTES];

	while (take_line(&text, line, sizeof(line))) {
		unsigned long found;
		int end = 0;

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &found, &end) != 1 ||
		    found != inode)
			continue;
		if (end == 0 || line[end] == '\0')
			return false;
		(void)snprintf(ret, size, "unix socket %s", line + end);
		return true;
	}
	return false;
}

void socketnames_describe(int proc, unsigned long inode, char *ret, size_t size)
{
	static const struct {
		const char *name;
		bool (*parse)(const char *text, unsigned long inode, char *ret, size_t size);
	} LISTS[] = {
		{ "net/tcp", socketnames_parse_tcp },
		{ "net/tcp6", socketnames_parse_tcp },
		{ "net/unix", socketnames_parse_unix },
	};
	_cleanup_free_ char *text = malloc(LIST_BYTES);

	for (size_t i = 0; text != NULL && i < ARRAY_SIZE(LISTS); i++)
		if (taskfiles_read(proc, LISTS[i].name, text, LIST_BYTES) > 0 &&
		    LISTS[i].parse(text, inode, ret, size))
			return;
}
