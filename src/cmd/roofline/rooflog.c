/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/rooflog.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_LINE "perftracker-roofline 1"
#define NUMBERS_MAX 6
#define COUNT_MAX 1000000000000 /* of iterations, bytes and the like: sums stay in 64 bits */
#define TIME_MAX ((int64_t)1 << 61)
#define BLOCKS_MAX 20000

/* One line, and where it is. */
struct line {
	const char *path;
	char *text; /* NUL-terminated */
	size_t off;
};

static int complain(const struct line *line, const char *expected, struct err *err)
{
	return err_set(err, EINVAL, "%s: offset %zu: expected %s, found \"%.60s\"", line->path,
		       line->off, expected, line->text);
}

/* Reads cnt numbers of words; *rest gets what follows. */
static bool take_numbers(const char *words, size_t cnt, int64_t *ret, const char **rest)
{
	const char *at = words;

	for (size_t i = 0; i < cnt; i++) {
		char *end;

		while (*at == ' ')
			at++;
		errno = 0;
		ret[i] = strtoll(at, &end, 10);
		if (end == at || errno != 0 || (*end != ' ' && *end != '\0') || ret[i] < -1 ||
		    ret[i] > TIME_MAX)
			return false;
		at = end;
	}
	while (*at == ' ')
		at++;
	*rest = at;
	return true;
}

static bool are_counts(const int64_t *numbers, size_t cnt, int64_t least)
{
	for (size_t i = 0; i < cnt; i++) {
		if (numbers[i] < least || numbers[i] > COUNT_MAX)
			return false;
	}
	return true;
}

static bool parse_rank(struct rooflog *log, const char *words)
{
	int64_t n[4];
	const char *host;

	if (!take_numbers(words, 4, n, &host) || n[0] > INT32_MAX || n[1] > INT32_MAX ||
	    n[2] > INT32_MAX || *host == '\0')
		return false;
	log->rank = (int)n[0];
	log->world = (int)n[1];
	log->pid = (int)n[2];
	log->start_ns = n[3];
	(void)snprintf(log->host, sizeof(log->host), "%s", host);
	return true;
}

static bool parse_loader(struct rooflog *log, const char *words)
{
	int64_t n[3];
	const char *rest;

	if (!take_numbers(words, 3, n, &rest) || *rest != '\0' || !are_counts(n, 2, 0) ||
	    n[0] > INT32_MAX || n[1] > INT32_MAX)
		return false;
	log->has_loader = true;
	log->workers = (int)n[0];
	log->prefetched = (int)n[1];
	log->length = n[2];
	return true;
}

static bool parse_plan(struct rooflog *log, const char *words)
{
	int64_t n[4];
	const char *rest;

	if (!take_numbers(words, 4, n, &rest) || *rest != '\0' || !are_counts(n, 4, 0))
		return false;
	log->warm = (uint64_t)n[0];
	log->skip = (uint64_t)n[1];
	log->block = (uint64_t)n[2];
	log->pairs = (uint64_t)n[3];
	return true;
}

static bool parse_kept(struct rooflog *log, const char *words)
{
	int64_t n[3];
	const char *rest;

	if (!take_numbers(words, 3, n, &rest) || *rest != '\0' || !are_counts(n, 1, 0) ||
	    n[1] < 0 || n[2] < 0 || n[2] > 1)
		return false;
	log->kept_cnt = (uint64_t)n[0];
	log->kept_bytes = n[1];
	log->copies = n[2] == 1;
	return true;
}

/* Returns 1, 0 for a wrong line, or -ENOMEM. */
static int parse_block(struct rooflog *log, const char *words)
{
	const bool repeated = strncmp(words, "repeated ", 9) == 0;
	int64_t n[NUMBERS_MAX];
	const char *rest;

	if (!repeated && strncmp(words, "real ", 5) != 0)
		return 0;
	if (!take_numbers(words + (repeated ? 9 : 5), 6, n, &rest) || *rest != '\0' ||
	    !are_counts(n, 1, 0) || !are_counts(n + 1, 1, 1) || n[2] < 0 || n[3] < 0 ||
	    !are_counts(n + 4, 2, 0) || log->blocks.cnt >= BLOCKS_MAX)
		return 0;
	return vec_push(&log->blocks, (struct roof_block){ .repeated = repeated,
							   .first = (uint64_t)n[0],
							   .cnt = (uint64_t)n[1],
							   .wall_ns = n[2],
							   .wait_ns = n[3],
							   .elements = n[4],
							   .epochs = (uint64_t)n[5] }) < 0
		       ? -ENOMEM
		       : 1;
}

static const char *after(const char *text, const char *word)
{
	const size_t len = strlen(word);

	return strncmp(text, word, len) == 0 && text[len] == ' ' ? text + len + 1 : NULL;
}

static int parse_line(struct rooflog *log, const struct line *line, struct err *err)
{
	const char *words;
	bool fits = false;

	if ((words = after(line->text, "rank")) != NULL) {
		fits = parse_rank(log, words);
	} else if ((words = after(line->text, "loader")) != NULL) {
		fits = parse_loader(log, words);
	} else if ((words = after(line->text, "plan")) != NULL) {
		fits = parse_plan(log, words);
	} else if ((words = after(line->text, "kept")) != NULL) {
		fits = parse_kept(log, words);
	} else if ((words = after(line->text, "block")) != NULL) {
		const int pushed = parse_block(log, words);

		if (pushed < 0)
			return err_set(err, ENOMEM, "%s: out of memory", line->path);
		fits = pushed == 1;
	} else if ((words = after(line->text, "refused")) != NULL) {
		(void)snprintf(log->refused, sizeof(log->refused), "%s", words);
		fits = true;
	} else if (strcmp(line->text, "done") == 0) {
		fits = log->done = true;
	} else {
		return complain(line, "a word of a roofline file", err);
	}
	return fits ? 0 : complain(line, "the numbers of its first word", err);
}

static int parse_lines(const char *path, char *text, size_t len, struct rooflog *log,
		       struct err *err)
{
	size_t begin = 0;

	while (begin < len) {
		char *end = memchr(text + begin, '\n', len - begin);
		const struct line line = { path, text + begin, begin };
		int error = 0;

		if (end == NULL)
			break;
		*end = '\0';
		if (begin > 0)
			error = parse_line(log, &line, err);
		else if (strcmp(line.text, FIRST_LINE) != 0)
			error = complain(&line, FIRST_LINE, err);
		if (error < 0)
			return error;
		begin = (size_t)(end - text) + 1;
	}
	if (begin == 0)
		return err_set(err, EINVAL, "%s: offset 0: expected " FIRST_LINE ", found no line",
			       path);
	return 0;
}

int rooflog_parse(const char *path, const char *text, size_t len, struct rooflog *ret,
		  struct err *err)
{
	struct rooflog log = { .rank = -1, .world = -1, .length = -1 };
	_cleanup_free_ char *copy = malloc(len + 1);
	int error;

	if (copy == NULL)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	memcpy(copy, text, len);
	copy[len] = '\0';
	error = parse_lines(path, copy, len, &log, err);
	if (error < 0)
		rooflog_done(&log);
	else
		*ret = log;
	return error;
}

int rooflog_read(const char *path, struct rooflog *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), error;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	error = file_read_whole(path, fd, ROOFLOG_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	return error < 0 ? error : rooflog_parse(path, text, len, ret, err);
}

void rooflog_done(struct rooflog *log)
{
	vec_done(&log->blocks);
}
