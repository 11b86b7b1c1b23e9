/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/alike.h"

#include <ctype.h>
#include <string.h>

struct word {
	const char *text;
	size_t len;
};

struct words {
	struct word list[ALIKE_WORDS];
	size_t cnt;
};

static bool word_equal(struct word a, struct word b)
{
	return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

static bool has_word(const struct words *words, struct word word)
{
	for (size_t i = 0; i < words->cnt; i++) {
		if (word_equal(words->list[i], word))
			return true;
	}
	return false;
}

static bool in_word(const char *begin, const char *p)
{
	if (!isalnum((unsigned char)*p))
		return false;
	return p == begin || !islower((unsigned char)p[-1]) || !isupper((unsigned char)*p);
}

static bool is_number(struct word word)
{
	return strspn(word.text, "0123456789") >= word.len;
}

/* Splits name into distinct words, without numbers (lines, sizes of templates). */
static void split(const char *name, struct words *ret)
{
	ret->cnt = 0;
	while (*name != '\0' && ret->cnt < ALIKE_WORDS) {
		struct word word = { .text = name };

		while (in_word(word.text, name))
			name++;
		word.len = (size_t)(name - word.text);
		if (!is_number(word) && !has_word(ret, word))
			ret->list[ret->cnt++] = word;
		while (*name != '\0' && !isalnum((unsigned char)*name))
			name++;
	}
}

double alike_names(const char *a, const char *b)
{
	struct words of_a, of_b;
	size_t common = 0;

	split(a, &of_a);
	split(b, &of_b);
	for (size_t i = 0; i < of_a.cnt; i++)
		common += has_word(&of_b, of_a.list[i]);
	if (of_a.cnt + of_b.cnt == 0)
		return strcmp(a, b) == 0 ? 1 : 0;
	return (double)common / (double)(of_a.cnt + of_b.cnt - common);
}
