/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kident.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct strtab strings;

/* Reads text as the first of a list's two values; the second must be reached. */
static int read_one(const char *text, struct ident *ret)
{
	char list[64];
	struct input *input;
	struct scan scan;
	bool first = true;
	int found, len = snprintf(list, sizeof(list), "[%s,1]", text);

	assert_int_equal(input_open_memory(list, (size_t)len, &input), 0);
	assert_int_equal(scan_init(&scan, input, "list", 0, NULL), 0);
	assert_int_equal(scan_expect(&scan, '[', "a list"), 0);
	assert_int_equal(scan_member(&scan, ']', &first), 1);
	found = kident_read(&scan, &strings, ret);
	if (found >= 0)
		assert_int_equal(scan_member(&scan, ']', &first), 1);
	scan_done(&scan);
	assert_null(input_free(input));
	return found;
}

static void assert_number(const char *text, int64_t expected)
{
	struct ident ident;

	assert_int_equal(read_one(text, &ident), 1);
	assert_int_equal(ident.text, 0);
	assert_int_equal(ident.num, expected);
}

static void assert_text(const char *text, const char *expected)
{
	struct ident ident;

	assert_int_equal(read_one(text, &ident), 1);
	assert_int_not_equal(ident.text, 0);
	assert_string_equal(strtab_text(&strings, ident.text), expected);
}

static void numbers_are_themselves(_unused_ void **state)
{
	assert_number("0", 0);
	assert_number("7", 7);
	assert_number("-975440128", -975440128);
	assert_number("9223372036854775807", INT64_MAX);
	assert_number("-9223372036854775807", -INT64_MAX);
	assert_number("2e3", 2000);
}

static void texts_that_say_a_number_are_that_number(_unused_ void **state)
{
	assert_number("\"25738\"", 25738);
	assert_number("\"-3\"", -3);
	assert_number("\"stream 7\"", 7);
	assert_number("\"999999999999999999\"", 999999999999999999);
}

static void other_texts_are_names(_unused_ void **state)
{
	assert_text("\"Spans\"", "Spans");
	assert_text("\"stream \"", "stream ");
	assert_text("\"stream x\"", "stream x");
	assert_text("\"-\"", "-");
	assert_text("\"7a\"", "7a");
	assert_text("\"1234567890123456789\"", "1234567890123456789");
	assert_text("\"\"", "(none)");
}

static void values_other_than_identities_are_consumed(_unused_ void **state)
{
	static const char *const values[] = { "null", "true", "{\"a\": [1]}", "1.5", "1e30" };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct ident ident = { 5, 5 };

		assert_int_equal(read_one(values[i], &ident), 0);
		assert_true(ident_same(ident, (struct ident){ 0 }));
	}
}

static void invalid_json_is_an_error(_unused_ void **state)
{
	struct ident ident;

	assert_int_equal(read_one("nul", &ident), -EBADMSG);
	assert_int_equal(read_one("-", &ident), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_themselves),
		cmocka_unit_test(texts_that_say_a_number_are_that_number),
		cmocka_unit_test(other_texts_are_names),
		cmocka_unit_test(values_other_than_identities_are_consumed),
		cmocka_unit_test(invalid_json_is_an_error),
	};
	int failed;

	if (strtab_init(&strings) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	strtab_done(&strings);
	return failed;
}
