/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place/awaited.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void what_is_written_is_read(void **state)
{
	static const char *const texts[] = { "92 % in a.py(3): f > <system call read>",
					     "thread, 92 % in a.py(3): f > <system call read>",
					     "child, 92 % in a.py(3): f > <system call read>" };

	(void)state;
	for (int by = 0; by < AWAITED_BY_CNT; by++) {
		struct awaited awaited = { (enum awaited_by)by, 0.916,
					   "a.py(3): f > <system call read>" };
		struct awaited read;
		char text[100];

		awaited_write(&awaited, text, sizeof(text));
		assert_string_equal(text, texts[by]);
		assert_true(awaited_read(text, &read));
		assert_int_equal(read.by, by);
		assert_float_equal(read.frac, 0.92, 1e-9);
		assert_string_equal(read.place, awaited.place);
	}
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = { "",
					     "a.py(3): f",
					     "% in a",
					     "nan % in a",
					     "101 % in a",
					     "-1 % in a",
					     "92 %in a",
					     "loader, 92 % in a",
					     "thread,92 % in a",
					     "thread, % in a" };
	struct awaited read;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_false(awaited_read(texts[i], &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(other_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
