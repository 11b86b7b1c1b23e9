/* SPDX-License-Identifier: Apache-2.0 */
#include "live/webhook/webhookfile.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX 65536u

struct parser {
	const char *path;
	struct webhookfile *file;
	struct err *err;
	int line;
};

static int complain(struct parser *parser, const char *expected, const char *found)
{
	return err_set(parser->err, EINVAL, "%s:%d: expected %s, found '%.60s'", parser->path,
		       parser->line, expected, found);
}

static bool is_printable(const char *text)
{
	for (const char *c = text; *c != '\0'; c++) {
		if (*c <= ' ' || *c >= 127)
			return false;
	}
	return true;
}

/* A URL without a user: "https://host/..."; the place is what stands before the path. */
static int take_url(struct parser *parser, const char *value)
{
	static const char expected[] = "an http:// or https:// URL without a user or a quote";
	struct webhookfile_hook *hook = &parser->file->hooks[parser->file->cnt];
	const char *host = strstr(value, "://");
	size_t scheme = host != NULL ? (size_t)(host - value) : 0, len;

	if ((scheme != 4 || strncmp(value, "http", 4) != 0) &&
	    (scheme != 5 || strncmp(value, "https", 5) != 0))
		return complain(parser, expected, "another scheme");
	len = scheme + 3 + strcspn(host + 3, "/?#");
	if (len == scheme + 3 || len >= sizeof(hook->place) || strlen(value) >= sizeof(hook->url) ||
	    !is_printable(value) || strpbrk(value, "\"\\") != NULL ||
	    memchr(value, '@', len) != NULL)
		return complain(parser, expected, "something else");
	if (parser->file->cnt == WEBHOOKFILE_HOOKS_MAX)
		return err_set(parser->err, E2BIG, "%s:%d: more than %u webhooks", parser->path,
			       parser->line, WEBHOOKFILE_HOOKS_MAX);
	*hook = (struct webhookfile_hook){ .format = WEBHOOK_JSON };
	(void)snprintf(hook->url, sizeof(hook->url), "%s", value);
	(void)snprintf(hook->place, sizeof(hook->place), "%.*s", (int)len, value);
	parser->file->cnt++;
	return 0;
}

static int take_format(struct parser *parser, struct webhookfile_hook *hook, const char *value)
{
	static const char *const names[] = { "json", "slack", "alertmanager" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		hook->format = (enum webhook_format)i;
		return 0;
	}
	return complain(parser, "json, slack or alertmanager", value);
}

static bool is_loopback(const char *place)
{
	static const char *const hosts[] = { "127.0.0.1", "[::1]", "localhost" };
	const char *host = strstr(place, "://") + 3;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		size_t len = strlen(hosts[i]);

		if (strncmp(host, hosts[i], len) == 0 && (host[len] == '\0' || host[len] == ':'))
			return true;
	}
	return false;
}

static int take_token_file(struct parser *parser, struct webhookfile_hook *hook, const char *value)
{
	if (value[0] != '/' || strlen(value) >= sizeof(hook->token_path))
		return complain(parser, "the absolute path of a file with a token", value);
	/* Everybody on the way could read it. */
	if (strncmp(hook->place, "http://", 7) == 0 && !is_loopback(hook->place))
		return complain(parser, "an https:// URL, for a token", "http://");
	(void)snprintf(hook->token_path, sizeof(hook->token_path), "%s", value);
	return 0;
}

static int take_line(struct parser *parser, const char *key, const char *value)
{
	size_t cnt = parser->file->cnt;
	struct webhookfile_hook *hook = cnt > 0 ? &parser->file->hooks[cnt - 1] : NULL;

	if (strcmp(key, "url") == 0)
		return take_url(parser, value);
	if (hook == NULL)
		return complain(parser, "url first", key);
	if (strcmp(key, "format") == 0)
		return take_format(parser, hook, value);
	if (strcmp(key, "token-file") == 0)
		return take_token_file(parser, hook, value);
	if (strcmp(key, "when") != 0)
		return complain(parser, "url, format, token-file or when", key);
	if (strcmp(value, "bad") != 0 && strcmp(value, "all") != 0)
		return complain(parser, "bad or all", value);
	hook->all = strcmp(value, "all") == 0;
	return 0;
}

/* "key value", without spaces at the ends; a comment, or nothing, is skipped. */
static int parse_line(struct parser *parser, char *line)
{
	char *key = line + strspn(line, " \t"), *value;
	size_t len = strlen(key);

	while (len > 0 && strchr(" \t\r", key[len - 1]) != NULL)
		key[--len] = '\0';
	if (key[0] == '\0' || key[0] == '#')
		return 0;
	value = key + strcspn(key, " \t");
	if (*value == '\0')
		return complain(parser, "a word and a value", key);
	*value++ = '\0';
	return take_line(parser, key, value + strspn(value, " \t"));
}

int webhookfile_parse(const char *path, const char *text, size_t len, struct webhookfile *ret,
		      struct err *err)
{
	struct parser parser = { .path = path, .file = ret, .err = err };
	char line[WEBHOOKFILE_URL_BYTES + 64];
	int error = 0;

	ret->cnt = 0;
	for (size_t at = 0; at < len && error == 0;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t line_len = end != NULL ? (size_t)(end - text) - at : len - at;

		parser.line++;
		if (line_len >= sizeof(line) || memchr(text + at, '\0', line_len) != NULL)
			return complain(&parser, "a shorter line of text", "something else");
		memcpy(line, text + at, line_len);
		line[line_len] = '\0';
		error = parse_line(&parser, line);
		at += line_len + 1;
	}
	if (error == 0 && ret->cnt == 0)
		return err_set(err, EINVAL,
			       "%s: expected lines such as `url https://...`, found none", path);
	return error;
}

/* The whole of a file that its owner alone can read. */
static int read_private(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	struct stat info;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		r = err_set(err, EINVAL, "%s: expected a file", path);
	else if ((info.st_mode & 077) != 0)
		r = err_set(err, EPERM,
			    "%s: others can read it, mode %03o: chmod 600, it may have secrets",
			    path, info.st_mode & 0777u);
	else
		r = file_read_whole(path, fd, FILE_BYTES_MAX, ret, ret_len, err);
	(void)close(fd);
	return r;
}

static int read_token(struct webhookfile_hook *hook, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int ret;

	if (hook->token_path[0] == '\0')
		return 0;
	ret = read_private(hook->token_path, &text, &len, err);
	if (ret < 0)
		return ret;
	while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
		len--;
	if (len == 0 || len >= sizeof(hook->token) || memchr(text, '\0', len) != NULL)
		return err_set(err, EINVAL, "%s: expected a token of at most %u bytes",
			       hook->token_path, WEBHOOKFILE_TOKEN_BYTES - 1);
	(void)snprintf(hook->token, sizeof(hook->token), "%.*s", (int)len, text);
	return is_printable(hook->token)
		       ? 0
		       : err_set(err, EINVAL, "%s: expected one word", hook->token_path);
}

int webhookfile_read(const char *path, struct webhookfile **ret, struct err *err)
{
	_cleanup_free_ struct webhookfile *file = calloc(1, sizeof(*file));
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	if (file == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = read_private(path, &text, &len, err);
	if (r == 0)
		r = webhookfile_parse(path, text, len, file, err);
	for (size_t i = 0; r == 0 && i < file->cnt; i++)
		r = read_token(&file->hooks[i], err);
	if (r < 0)
		return r;
	*ret = file;
	file = NULL;
	return 0;
}
