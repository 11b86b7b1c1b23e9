/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rankset.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void assert_formats(const int *ranks, size_t cnt, const char *expected)
{
	struct str out = { 0 };

	rankset_format(&out, ranks, cnt);
	assert_string_equal(str_borrow(&out), expected);
	str_done(&out);
}

static void runs_are_compressed(void **state)
{
	(void)state;
	assert_formats(NULL, 0, "");
	assert_formats((const int[]){ 7 }, 1, "7");
	assert_formats((const int[]){ 0, 1, 2, 7 }, 4, "0-2,7");
	assert_formats((const int[]){ 0, 1 }, 2, "0-1");
	assert_formats((const int[]){ 1, 3, 5 }, 3, "1,3,5");
	assert_formats((const int[]){ 0, 2, 3, 4, 1000, 1001 }, 6, "0,2-4,1000-1001");
}

static void assert_parses(const char *text, const char *expected)
{
	rankset_vec ranks = { 0 };
	struct err err;

	assert_int_equal(rankset_parse(text, &ranks, &err), 0);
	assert_formats(ranks.data, ranks.cnt, expected);
	vec_done(&ranks);
}

static void sets_are_sorted_and_distinct(void **state)
{
	(void)state;
	assert_parses("0", "0");
	assert_parses("7,0-2", "0-2,7");
	assert_parses("3,1,2,2,1-3", "1-3");
	assert_parses("5-5", "5");
	assert_parses("1048575", "1048575");
	assert_parses("007", "7");
}

static void invalid_sets_are_refused_with_an_error_line(void **state)
{
	static const char *const texts[] = {
		"",    "a",   "1,", ",1",      "1,,2",
		"2-1", "-1",  "1-", "1-2-3",   " 1",
		"1 ",  "1;2", "+1", "1048576", "99999999999999999999",
		"0x1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		rankset_vec ranks = { 0 };
		struct err err = { 0 };

		assert_int_equal(rankset_parse(texts[i], &ranks, &err), -EINVAL);
		assert_null(ranks.data);
		assert_non_null(strstr(err.text, "expected numbers and ranges"));
		assert_int_equal(rankset_parse(texts[i], &ranks, NULL), -EINVAL);
	}
}

static void without_memory_the_output_is_unchanged(void **state)
{
	int error = -ENOMEM, allocations = 0;

	(void)state;
	for (; error != 0; allocations++) {
		rankset_vec ranks = { 0 };

		allocations_left = allocations;
		error = rankset_parse("0-99,200", &ranks, NULL);
		allocations_left = -1;
		assert_true(error == -ENOMEM ? ranks.data == NULL : ranks.cnt == 101);
		vec_done(&ranks);
	}
	assert_true(allocations > 1);
}

/* Every subset of eight ranks is the same set after a round trip. */
static void all_small_sets_survive_a_round_trip(void **state)
{
	(void)state;
	for (unsigned int bits = 1; bits < 256; bits++) {
		rankset_vec parsed = { 0 };
		struct str text = { 0 };
		int ranks[8];
		size_t cnt = 0;

		for (int i = 0; i < 8; i++) {
			if (bits >> i & 1)
				ranks[cnt++] = i;
		}
		rankset_format(&text, ranks, cnt);
		assert_int_equal(rankset_parse(str_borrow(&text), &parsed, NULL), 0);
		assert_int_equal(parsed.cnt, cnt);
		assert_memory_equal(parsed.data, ranks, cnt * sizeof(int));
		vec_done(&parsed);
		str_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_compressed),
		cmocka_unit_test(sets_are_sorted_and_distinct),
		cmocka_unit_test(invalid_sets_are_refused_with_an_error_line),
		cmocka_unit_test(without_memory_the_output_is_unchanged),
		cmocka_unit_test(all_small_sets_survive_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
