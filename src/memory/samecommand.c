/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/samecommand.h"

#include <string.h>

/* With - for _, as torchrun takes both; each has a value. */
static const char *const indifferent[] = {
	"--master-port",     "--master-addr",	"--main-process-port",
	"--main-process-ip", "--rdzv-endpoint", "--rdzv-id",
	"--node-rank",	     "--machine-rank",	"--log-dir",
};

struct word {
	const char *text;
	size_t len;
};

static bool next_word(const char **at, struct word *ret)
{
	*at += strspn(*at, " \t");
	ret->text = *at;
	ret->len = strcspn(*at, " \t");
	*at += ret->len;
	return ret->len > 0;
}

static bool is_named(struct word word, const char *name)
{
	size_t len = strlen(name);

	if (word.len < len || (word.len > len && word.text[len] != '='))
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((word.text[i] == '_' ? '-' : word.text[i]) != name[i])
			return false;
	}
	return true;
}

static bool is_indifferent(struct word word)
{
	for (size_t i = 0; i < ARRAY_SIZE(indifferent); i++) {
		if (is_named(word, indifferent[i]))
			return true;
	}
	return false;
}

/* The next word that counts. */
static bool next_weighty(const char **at, struct word *ret)
{
	struct word value;

	while (next_word(at, ret)) {
		if (!is_indifferent(*ret))
			return true;
		if (memchr(ret->text, '=', ret->len) == NULL)
			(void)next_word(at, &value);
	}
	return false;
}

bool samecommand(const char *a, const char *b)
{
	struct word x, y;

	if (a == NULL || b == NULL)
		return false;
	for (;;) {
		bool more = next_weighty(&a, &x);

		if (more != next_weighty(&b, &y))
			return false;
		if (!more)
			return true;
		if (x.len != y.len || memcmp(x.text, y.text, x.len) != 0)
			return false;
	}
}
