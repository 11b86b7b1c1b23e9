/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/secrets.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define RANDOM_LEN 24 /* file names and versions are shorter, or contain words */
#define INNER_LEN 15  /* minimum length after a token's prefix in the middle of a word */
#define KEPT 3

static const char separators[] = " \t\n:;,=&?/\"'@";

/* Prefixes of tokens of well-known services. */
static const char *const beginnings[] = {
	"sk-",	  "ghp_",  "gho_",  "ghs_",  "ghu_", "github_pat_", "glpat-",  "hf_",
	"nvapi-", "xoxb-", "xoxp-", "xoxa-", "AKIA", "ASIA",	    "eyJ",     "ya29.",
	"AIza",	  "npm_",  "pypi-", "dop_",  "pat_", "key-",	    "Bearer-", "wandb_v",
};

/* A word that ends like this, before '=' or ':', names a secret. */
static const char *const names[] = { "password",   "passwd", "pass",	  "pwd",
				     "pw",	   "secret", "token",	  "apikey",
				     "api_key",	   "key",    "auth",	  "sig",
				     "credential", "cookie", "signature", "session" };

static bool begins_like_token(const char *word, size_t len, size_t least)
{
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		size_t part = strlen(beginnings[i]);

		if (len > part + least && strncmp(word, beginnings[i], part) == 0)
			return true;
	}
	return false;
}

/* A token prefix at the start, or after a separator if the rest is long: "key-ring" is no token. */
static bool holds_token(const char *word, size_t len)
{
	if (begins_like_token(word, len, 4))
		return true;
	for (size_t i = 1; i < len; i++) {
		if (!isalnum((unsigned char)word[i - 1]) &&
		    begins_like_token(word + i, len - i, INNER_LEN))
			return true;
	}
	return false;
}

static bool names_secret(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t part = strlen(names[i]);

		if (len >= part && strncasecmp(word + len - part, names[i], part) == 0)
			return true;
	}
	return false;
}

/* Whether a word is long and one run of mixed letters and digits: hexadecimal, base64. */
static bool is_random(const char *word, size_t len)
{
	size_t digits = 0, letters = 0, changes = 0;

	if (len < RANDOM_LEN)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool digit = isdigit((unsigned char)word[i]) != 0;

		digits += digit;
		letters += isalpha((unsigned char)word[i]) != 0;
		changes += i > 0 && digit != (isdigit((unsigned char)word[i - 1]) != 0);
	}
	return digits >= 3 && letters >= 3 && changes >= 5 && 10 * (digits + letters) >= 9 * len;
}

/* Length of "user:password@" of a URL: from after "//" to the last '@' before the next '/'. */
static size_t login_len(const char *at)
{
	size_t host = strcspn(at, "/ \t\n,;\"'"), len = 0;

	for (size_t i = 0; i < host; i++) {
		if (at[i] == '@')
			len = i;
	}
	return len;
}

static void put(char *ret, size_t size, size_t *len, const char *text, size_t cnt)
{
	for (size_t i = 0; i < cnt && *len + 1 < size; i++)
		ret[(*len)++] = text[i];
	ret[*len] = '\0';
}

static void put_masked(char *ret, size_t size, size_t *len, const char *word, size_t cnt)
{
	put(ret, size, len, word, MIN(cnt / 4, (size_t)KEPT));
	put(ret, size, len, "***", 3);
}

/* The text after "token=" or "Authorization: " is a secret, to the next blank or separator. */
static bool follows_name(const char *value, const char *word)
{
	const char *end = word, *begin;

	while (end > value && (end[-1] == ' ' || end[-1] == '"' || end[-1] == '\''))
		end--;
	if (end < word && end - value >= 6 && strncasecmp(end - 6, "bearer", 6) == 0)
		return true;
	if (end == value || (end[-1] != '=' && end[-1] != ':'))
		return false;
	end--;
	while (end > value && (end[-1] == ' ' || end[-1] == '"' || end[-1] == '\''))
		end--;
	for (begin = end; begin > value && strchr(separators, begin[-1]) == NULL;)
		begin--;
	return begin < end && names_secret(begin, (size_t)(end - begin));
}

static void mask_words(const char *value, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (const char *at = value; *at != '\0';) {
		size_t word = strcspn(at, separators);
		bool url = at - value >= 2 && at[-1] == '/' && at[-2] == '/';
		size_t login = url ? login_len(at) : 0;

		if (login > 0) {
			put(ret, size, &len, "***", 3);
			at += login;
			continue;
		}
		if (word == 0) {
			put(ret, size, &len, at++, 1);
			continue;
		}
		if (follows_name(value, at) || holds_token(at, word) || is_random(at, word))
			put_masked(ret, size, &len, at, word);
		else
			put(ret, size, &len, at, word);
		at += word;
	}
}

void mask_value(const char *value, char *ret, size_t size)
{
	char masked[4096];

	mask_words(value, masked, sizeof(masked));
	if (strlen(masked) > MASK_SHOWN_MAX)
		(void)snprintf(ret, size, "%.*s...", MASK_SHOWN_MAX - 3, masked);
	else
		(void)snprintf(ret, size, "%s", masked);
}
