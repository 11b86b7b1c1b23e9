/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/commandline.h"

#include <ctype.h>
#include <string.h>

#define HIDDEN "***"

/* Whether text[len] holds word, in any case. */
static bool has_word(const char *text, size_t len, const char *word)
{
	size_t need = strlen(word);

	for (size_t i = 0; i + need <= len; i++) {
		size_t same = 0;

		while (same < need && tolower((unsigned char)text[i + same]) == word[same])
			same++;
		if (same == need)
			return true;
	}
	return false;
}

/* "--num-tokens 512" is none; "--hf_token x" and "WANDB_API_KEY=x" are. */
static bool is_secret_name(const char *name, size_t len)
{
	static const char *const words[] = { "password", "passwd",  "secret", "credential",
					     "api-key",	 "api_key", "apikey" };
	static const char *const ends[] = { "token", "-key", "_key", "auth" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (has_word(name, len, words[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t need = strlen(ends[i]);

		if (len > need && has_word(name + len - need, need, ends[i]))
			return true;
	}
	return false;
}

static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && strchr("@%+=:,./_-", text[i]) == NULL)
			return false;
	}
	return len > 0;
}

static void append_quoted(struct str *out, const char *text, size_t len)
{
	if (is_plain(text, len)) {
		str_append_len(out, text, len);
		return;
	}
	str_append(out, "'");
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\'')
			str_append(out, "'\\''");
		else
			str_append_len(out, text + i, 1);
	}
	str_append(out, "'");
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("_-.", c) != NULL);
}

/*
 * A word that gives a secret loses all behind its name: "--env=HF_TOKEN=x", and so do scripts,
 * "X=1 HF_TOKEN=x python t.py".
 */
static void append_word(struct str *out, const char *word)
{
	size_t len = strlen(word), kept = MIN(len, (size_t)COMMANDLINE_WORD);

	for (size_t at = strcspn(word, "="); at < len; at += 1 + strcspn(word + at + 1, "=")) {
		size_t from = at;

		while (from > 0 && is_of_name(word[from - 1]))
			from--;
		if (!is_secret_name(word + from, at - from))
			continue;
		append_quoted(out, word, MIN(at, kept));
		str_append(out, at <= kept ? "=" HIDDEN : "...");
		return;
	}
	append_quoted(out, word, kept);
	str_append(out, kept < len ? "..." : "");
}

void commandline_append(struct str *out, char *const *argv)
{
	size_t start = out->len;
	bool hide = false; /* the next word is the value of a secret option */

	for (size_t i = 0; argv[i] != NULL; i++) {
		const char *word = argv[i];

		if (out->len - start > COMMANDLINE_BYTES) {
			str_append(out, " ...");
			return;
		}
		str_append(out, i > 0 ? " " : "");
		if (hide && word[0] != '-')
			str_append(out, HIDDEN);
		else
			append_word(out, word);
		hide = word[0] == '-' && strchr(word, '=') == NULL &&
		       is_secret_name(word, strlen(word));
	}
}
