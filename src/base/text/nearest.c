/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 48u

/* One letter in three may be wrong: more would suggest unrelated words. */
#define LETTERS_PER_ERROR 3

void nearest_init(struct nearest *nearest, const char *typed, size_t len)
{
	*nearest = (struct nearest){ .typed = typed, .typed_len = len };
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Both words have at most WORD_MAX letters. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1]; /* of a's letters i - 2, i - 1 and i, in turn */

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		const size_t *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t shorter = MIN(above[j], row[j - 1]) + 1;

			row[j] = MIN(shorter, above[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void nearest_offer(struct nearest *nearest, const char *word)
{
	size_t len = strlen(word), most = MAX(len, nearest->typed_len), apart;

	if (most > WORD_MAX || nearest->typed_len == 0)
		return;
	apart = distance(nearest->typed, nearest->typed_len, word, len);
	if (apart * LETTERS_PER_ERROR > most ||
	    (nearest->best != NULL && apart >= nearest->best_distance))
		return;
	nearest->best = word;
	nearest->best_distance = apart;
}
