/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/unpickle.h"

#include "base/test_alloc.h"
#include "base/test_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BYTES(text) (text), sizeof(text) - 1

static char *text_of(const char *data, size_t len)
{
	struct err err = { "" };
	json_t *root = NULL;
	char *text;

	assert_int_equal(unpickle("f", data, len, &root, &err), 0);
	text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
	json_decref(root);
	return text;
}

static void assert_text(const char *data, size_t len, const char *expected)
{
	char *text = text_of(data, len);

	assert_string_equal(text, expected);
	free(text);
}

static void assert_refused(const char *data, size_t len, const char *line)
{
	struct err err = { "" };
	json_t *root = NULL;

	assert_int_equal(unpickle("f", data, len, &root, &err), -EINVAL);
	assert_null(root);
	assert_string_equal(err.text, line);
}

/* Bytes as CPython writes them. */
static void values_of_data_are_read(void **state)
{
	(void)state;
	assert_text(BYTES("\x80\x02N."), "null");
	assert_text(BYTES("\x80\x02\x88."), "true");
	assert_text(BYTES("\x80\x02K\x07."), "7");
	assert_text(BYTES("\x80\x02M\x01\x02."), "513");
	assert_text(BYTES("\x80\x02J\xff\xff\xff\xff."), "-1");
	assert_text(BYTES("\x80\x02\x8a\x01\x80."), "-128");
	assert_text(BYTES("\x80\x02\x8a\x00."), "0");
	assert_text(BYTES("\x80\x02\x8a\x05\x00\x00\x00\x00\x01."), "4294967296");
	assert_text(BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."),
		    "9.2233720368547758e18");
	assert_text(BYTES("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."), "1.5");
	assert_text(BYTES("\x80\x02X\x02\x00\x00\x00hi."), "\"hi\"");
	assert_text(BYTES("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94."), "\"hi\"");
	assert_text(BYTES("\x80\x02]q\x00(K\x01K\x02\x65."), "[1,2]");
	assert_text(BYTES("\x80\x02K\x01K\x02\x86q\x00."), "[1,2]");
	assert_text(BYTES("\x80\x02(K\x01K\x02K\x03K\x04t."), "[1,2,3,4]");
	assert_text(BYTES("\x80\x02}q\x00(X\x01\x00\x00\x00\x61K\x01K\x05K\x02u."),
		    "{\"5\":2,\"a\":1}");
	assert_text(BYTES("\x80\x02}X\x01\x00\x00\x00\x61]s."), "{\"a\":[]}");
	assert_text(BYTES("\x80\x02](X\x01\x00\x00\x00xq\x01h\x01\x65."), "[\"x\",\"x\"]");
}

static void what_runs_code_is_refused_with_its_offset(void **state)
{
	(void)state;
	assert_refused(
		BYTES("\x80\x02\x63os\nsystem\nq\x00."),
		"f: offset 2: expected a pickle of data alone, found GLOBAL, which loads code");
	assert_refused(BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."),
		       "f: offset 14: expected a pickle of data alone, found STACK_GLOBAL, which "
		       "loads code");
	assert_refused(
		BYTES("\x80\x02K\x01)R."),
		"f: offset 5: expected a pickle of data alone, found REDUCE, which calls code");
	assert_refused(
		BYTES("\x80\x02)\x81."),
		"f: offset 3: expected a pickle of data alone, found NEWOBJ, which calls code");
	assert_refused(BYTES("\x80\x02\x8f."),
		       "f: offset 2: expected a pickle of data alone, found opcode 0x8f");
}

static void damaged_pickles_are_refused(void **state)
{
	(void)state;
	assert_refused(BYTES(""),
		       "f: offset 0: expected a pickle, found its end in the middle of a value");
	assert_refused(BYTES("\x80\x02X\xff\xff\xff\x7fhi."),
		       "f: offset 2: expected a text inside the file, found a longer one");
	assert_refused(
		BYTES("\x80\x02."),
		"f: offset 2: expected one value at the end, found another number of values");
	assert_refused(BYTES("\x80\x02\x65."), "f: offset 2: expected a mark before, found none");
	assert_refused(
		BYTES("\x80\x02h\x05."),
		"f: offset 2: expected a value that was remembered, found none of that number");
	assert_refused(
		BYTES("\x80\x02Nr\xff\xff\xff\xff."),
		"f: offset 3: expected values remembered in order, found a number far beyond");
	assert_refused(BYTES("\x80\x02K\x01(K\x02\x65."),
		       "f: offset 7: expected a new list on the stack, found another value");
	assert_refused(
		BYTES("\x80\x02}(K\x01u."),
		"f: offset 6: expected pairs of keys and values, found a key without a value");
	assert_refused(BYTES("\x80\x02}(]K\x01u."),
		       "f: offset 7: expected a dict with keys that are "
		       "texts or integers, found another key");
}

static void a_value_never_contains_itself(void **state)
{
	(void)state;
	assert_refused(BYTES("\x80\x02]q\x00h\x00\x61."),
		       "f: offset 5: expected a complete value, found a container in itself");
	/* A complete list gets no more items: it could get one that contains it. */
	assert_refused(BYTES("\x80\x02]q\x00\x85q\x01h\x00h\x01\x61."),
		       "f: offset 12: expected a new list on the stack, found another value");
}

static void deep_nests_are_refused(void **state)
{
	char deep[2 + 100 + 99 + 1] = "\x80\x02";

	(void)state;
	memset(deep + 2, ']', 100);
	memset(deep + 102, 'a', 99);
	deep[sizeof(deep) - 1] = '.';
	assert_refused(deep, sizeof(deep),
		       "f: offset 133: expected at most 32 containers in each other, found more");
}

/* Any bytes: a value or one line, and no memory is lost (the sanitizers look). */
static void changed_bytes_never_do_harm(void **state)
{
	static const char good[] =
		"\x80\x02}q\x00(X\x01\x00\x00\x00\x61q\x01](K\x01M\x01\x02\x8a\x01\x80G\x3f\xf8\x00"
		"\x00\x00\x00\x00\x00\x65X\x01\x00\x00\x00\x62h\x01K\x06K\x05K\x02\x86u.";
	uint64_t random = 3;
	size_t read = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char data[sizeof(good)];
		struct err err = { "" };
		json_t *root = NULL;
		size_t len = sizeof(good) - 1;

		memcpy(data, good, sizeof(good));
		for (int i = 0; i < 3; i++)
			data[test_below(&random, len)] = (char)test_below(&random, 256);
		if (test_below(&random, 4) == 0)
			len = test_below(&random, len);
		if (unpickle("f", data, len, &root, &err) == 0)
			read++;
		else
			assert_true(err.text[0] != '\0');
		json_decref(root);
	}
	assert_true(read > 100 && read < 19900);
}

static void allocations_that_fail_are_told(void **state)
{
	static const char data[] = "\x80\x02}q\x00(X\x01\x00\x00\x00\x61K\x01K\x05]u.";
	int error = -ENOMEM;
	json_t *root = NULL;

	(void)state;
	for (long n = 0; error == -ENOMEM && n < 100; n++) {
		struct err err;

		allocations_left = n;
		error = unpickle("f", BYTES(data), &root, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_data_are_read),
		cmocka_unit_test(what_runs_code_is_refused_with_its_offset),
		cmocka_unit_test(damaged_pickles_are_refused),
		cmocka_unit_test(a_value_never_contains_itself),
		cmocka_unit_test(deep_nests_are_refused),
		cmocka_unit_test(changed_bytes_never_do_harm),
		cmocka_unit_test(allocations_that_fail_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
