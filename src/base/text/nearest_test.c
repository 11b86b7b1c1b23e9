/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"

#include "base/test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char *const words[] = { "run",	 "profile", "status",	"analyze", "localize",
				     "simulate", "dump",    "--format", "nic-bond" };

static const char *meant_by(const char *typed)
{
	struct nearest nearest;

	nearest_init(&nearest, typed, strlen(typed));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		nearest_offer(&nearest, words[i]);
	return nearest.best;
}

static void a_mistyped_word_finds_the_one_that_was_meant(void **state)
{
	static const char *const cases[][2] = {
		{ "runn", "run" },	    { "analyse", "analyze" },	 { "stauts", "status" },
		{ "--fromat", "--format" }, { "nicbond", "nic-bond" },	 { "LOCALISE", "localize" },
		{ "profiel", "profile" },   { "simulated", "simulate" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(meant_by(cases[i][0]), cases[i][1]);
}

static void an_unrelated_word_finds_none(void **state)
{
	char longest[200];

	(void)state;
	memset(longest, 'r', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(meant_by("train"));
	assert_null(meant_by("x"));
	assert_null(meant_by(""));
	assert_null(meant_by(longest));
}

/* The definition, without a table. */
static size_t slow_distance(const char *a, size_t i, const char *b, size_t j)
{
	size_t ret;

	if (i == 0 || j == 0)
		return i + j;
	ret = slow_distance(a, i - 1, b, j - 1) + (a[i - 1] != b[j - 1]);
	ret = MIN(ret, slow_distance(a, i - 1, b, j) + 1);
	ret = MIN(ret, slow_distance(a, i, b, j - 1) + 1);
	if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
		ret = MIN(ret, slow_distance(a, i - 2, b, j - 2) + 1);
	return ret;
}

static void the_distance_is_that_of_its_definition(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char a[8] = "", b[8] = "";
		size_t a_len = 1 + test_random(&random) % 6, b_len = 1 + test_random(&random) % 6;
		struct nearest nearest;
		size_t expected;

		for (size_t i = 0; i < a_len; i++)
			a[i] = (char)('a' + test_random(&random) % 3);
		for (size_t i = 0; i < b_len; i++)
			b[i] = (char)('a' + test_random(&random) % 3);
		expected = slow_distance(a, a_len, b, b_len);
		nearest_init(&nearest, a, a_len);
		nearest_offer(&nearest, b);
		if (expected * 3 <= MAX(a_len, b_len))
			assert_int_equal(nearest.best_distance, expected);
		else
			assert_null(nearest.best);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mistyped_word_finds_the_one_that_was_meant),
		cmocka_unit_test(an_unrelated_word_finds_none),
		cmocka_unit_test(the_distance_is_that_of_its_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
