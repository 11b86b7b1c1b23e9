/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/kernelnames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void kernelnames_done(struct kernelnames *names)
{
	vec_done(&names->list);
	arena_done(&names->arena);
}

/* Length of a name without the compiler's suffix. */
static size_t short_length(const char *name, size_t len)
{
	const char *dot = memchr(name, '.', len);

	return dot != NULL && dot > name ? (size_t)(dot - name) : len;
}

/* "ffffffff81000000 T _text", perhaps with "\t[module]" behind it. */
static int add_line(struct kernelnames *names, const char *line, size_t len)
{
	struct kernelname entry = { 0 };
	char *end, *copy;
	size_t at;

	entry.addr = strtoull(line, &end, 16);
	at = (size_t)(end - line);
	if (at == 0 || at + 3 >= len || strchr("tTwW", line[at + 1]) == NULL)
		return 0;
	at += 3;
	copy = arena_strndup(&names->arena, line + at,
			     short_length(line + at, strcspn(line + at, "\t \n")));
	if (copy == NULL)
		return -ENOMEM;
	entry.name = copy;
	return vec_push(&names->list, entry);
}

/* The start of a line that was cut, with its end. Returns the bytes taken off text, or -ENOMEM. */
static int complete_last(struct kernelnames *names, const char *text, size_t len, size_t *ret)
{
	const char *end = memchr(text, '\n', len);
	const size_t have = strlen(names->last), more = end != NULL ? (size_t)(end - text) : len;

	*ret = end != NULL ? more + 1 : len;
	(void)snprintf(names->last + have, sizeof(names->last) - have, "%.*s%s",
		       (int)MIN(more, 127ul), text, end != NULL ? "\n" : "");
	if (end == NULL)
		return 0;
	const int error = add_line(names, names->last, strlen(names->last));

	names->last[0] = '\0';
	return error;
}

int kernelnames_add(struct kernelnames *names, const char *text, size_t len)
{
	size_t at = 0;
	int error = 0;

	if (names->last[0] != '\0')
		error = complete_last(names, text, len, &at);
	while (error == 0 && at < len) {
		const char *end = memchr(text + at, '\n', len - at);

		if (end == NULL)
			return complete_last(names, text + at, len - at, &at);
		error = add_line(names, text + at, (size_t)(end - text) - at + 1);
		at = (size_t)(end - text) + 1;
	}
	return error;
}

static int compare(const void *a, const void *b)
{
	const struct kernelname *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void kernelnames_sort(struct kernelnames *names)
{
	if (names->list.cnt > 0)
		qsort(names->list.data, names->list.cnt, sizeof(*names->list.data), compare);
}

static int read_all(struct kernelnames *names, int fd)
{
	enum { PIECE = 64 << 10 };
	_cleanup_free_ char *piece = malloc(PIECE);
	int error = piece != NULL ? 0 : -ENOMEM;

	while (error == 0) {
		const ssize_t len = read(fd, piece, PIECE);

		if (len == 0)
			break;
		if (len < 0 && errno == EINTR)
			continue;
		error = len < 0 ? -errno : kernelnames_add(names, piece, (size_t)len);
	}
	return error;
}

int kernelnames_read(struct kernelnames *names, const char *root)
{
	char path[512];
	int fd, error;

	*names = (struct kernelnames){ 0 };
	arena_init(&names->arena);
	(void)snprintf(path, sizeof(path), "%s/proc/kallsyms", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = read_all(names, fd);
	(void)close(fd);
	kernelnames_sort(names);
	/* Where they are hidden, all addresses are zero. */
	if (error == 0 && (names->list.cnt == 0 || names->list.data[names->list.cnt - 1].addr == 0))
		error = -EPERM;
	return error;
}

const char *kernelnames_find(const struct kernelnames *names, uint64_t addr)
{
	size_t low = 0, high = names->list.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (names->list.data[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? names->list.data[low - 1].name : NULL;
}
