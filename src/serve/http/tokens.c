/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tokens.h"

#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define BLANKS " \t\r"

struct token {
	enum role role;
	char text[TOKEN_BYTES_MAX + 1]; /* zeros behind it, so that all compare alike */
	char name[TOKEN_NAME_BYTES];
};

struct tokens {
	VEC(struct token) list;
};

struct tokens *tokens_free(struct tokens *tokens)
{
	if (tokens != NULL) {
		if (tokens->list.data != NULL)
			explicit_bzero(tokens->list.data,
				       tokens->list.cnt * sizeof(*tokens->list.data));
		vec_done(&tokens->list);
	}
	free(tokens);
	return NULL;
}

/* A word of a line: its begin, and its length in *ret_len. */
static const char *next_word(const char **at, size_t *ret_len)
{
	const char *word = *at + strspn(*at, BLANKS);

	*ret_len = strcspn(word, BLANKS);
	*at = word + *ret_len;
	return word;
}

static bool is_word(const char *word, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(word, name, len) == 0;
}

/* line: NUL-terminated. Returns 0, or -EINVAL with what was expected in err. */
static int parse_line(struct tokens *tokens, const char *line, struct err *err)
{
	struct token token = { .role = ROLE_NONE };
	const char *word;
	size_t len;

	word = next_word(&line, &len);
	if (len == 0 || word[0] == '#')
		return 0;
	if (is_word(word, len, "viewer"))
		token.role = ROLE_VIEWER;
	else if (is_word(word, len, "operator"))
		token.role = ROLE_OPERATOR;
	else
		return err_set(err, EINVAL, "expected viewer or operator, found %.*s",
			       (int)MIN(len, (size_t)40), word);
	word = next_word(&line, &len);
	if (len < TOKEN_BYTES_MIN || len > TOKEN_BYTES_MAX)
		return err_set(err, EINVAL,
			       "expected a token of %u to %u characters, found %zu: make one with "
			       "`openssl rand -hex 16`",
			       TOKEN_BYTES_MIN, TOKEN_BYTES_MAX, len);
	if (tokens->list.cnt >= TOKENS_MAX)
		return err_set(err, EINVAL, "expected at most %u tokens", TOKENS_MAX);
	memcpy(token.text, word, len);
	word = next_word(&line, &len);
	(void)snprintf(token.name, sizeof(token.name), "%.*s", (int)len, word);
	return vec_push(&tokens->list, token) == 0 ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int parse_lines(struct tokens *tokens, const char *path, const char *text, size_t len,
		       struct err *err)
{
	char line[1024];
	struct err why;
	size_t number = 1;
	int ret = 0;

	for (size_t at = 0; at < len && ret == 0; number++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t part = end != NULL ? (size_t)(end - text) - at : len - at;

		if (part >= sizeof(line) || memchr(text + at, '\0', part) != NULL)
			return err_set(err, EINVAL,
				       "%s line %zu: expected a line of text of up to %zu bytes",
				       path, number, sizeof(line) - 1);
		memcpy(line, text + at, part);
		line[part] = '\0';
		ret = parse_line(tokens, line, &why);
		if (ret < 0)
			(void)err_set(err, -ret, "%s line %zu: %s", path, number, why.text);
		at += part + 1;
	}
	explicit_bzero(line, sizeof(line));
	if (ret == 0 && tokens->list.cnt == 0)
		return err_set(err, EINVAL,
			       "%s: expected lines such as \"viewer TOKEN\", found none", path);
	return ret;
}

int tokens_parse(const char *path, const char *text, size_t len, struct tokens **ret,
		 struct err *err)
{
	struct tokens *tokens = calloc(1, sizeof(*tokens));
	int r;

	if (tokens == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = parse_lines(tokens, path, text, len, err);
	if (r < 0) {
		(void)tokens_free(tokens);
		return r;
	}
	*ret = tokens;
	return 0;
}

/*
 * Others must not read the tokens, nor have written them. A file of root that the group may read is
 * how Kubernetes (a volume of a Secret, with fsGroup) and systemd (LoadCredential) give a secret to a
 * program that is not root.
 */
static int check_owner(const char *path, int fd, struct err *err)
{
	bool given = geteuid() != 0;
	struct stat info;

	if (fstat(fd, &info) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (info.st_uid != geteuid() && info.st_uid != 0)
		return err_set(err, EPERM, "%s: belongs to another user: copy it", path);
	if ((info.st_mode & (given && info.st_uid == 0 ? 037u : 077u)) != 0)
		return err_set(err, EPERM, "%s: others may read the tokens: chmod 600 %s", path,
			       path);
	return 0;
}

int tokens_read(const char *path, struct tokens **ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	r = check_owner(path, fd, err);
	if (r == 0)
		r = file_read_whole(path, fd, FILE_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	return r == 0 ? tokens_parse(path, text, len, ret, err) : r;
}

/* 0 when equal; looks at all bytes of both. */
static unsigned differs(const char *a, const char *b)
{
	unsigned bits = 0;

	for (size_t i = 0; i <= TOKEN_BYTES_MAX; i++)
		bits |= (unsigned)(unsigned char)(a[i] ^ b[i]);
	return bits;
}

/* The one with the highest role; NULL: none. Looks at all of them. */
static const struct token *find(const struct tokens *tokens, const char *token)
{
	char padded[TOKEN_BYTES_MAX + 1] = "";
	const struct token *ret = NULL;
	size_t len = strlen(token);

	if (len > TOKEN_BYTES_MAX)
		return NULL;
	memcpy(padded, token, len);
	vec_foreach(known, &tokens->list) {
		if (differs(padded, known->text) == 0 && (ret == NULL || known->role > ret->role))
			ret = known;
	}
	return ret;
}

enum role tokens_role(const struct tokens *tokens, const char *token)
{
	const struct token *found = find(tokens, token);

	return found != NULL ? found->role : ROLE_NONE;
}

void tokens_name(const struct tokens *tokens, const char *token, char ret[static TOKEN_NAME_BYTES])
{
	const struct token *found = find(tokens, token);

	(void)snprintf(ret, TOKEN_NAME_BYTES, "%s", found != NULL ? found->name : "");
}
