/* SPDX-License-Identifier: Apache-2.0 */
#include "format/stallfile/stallfile.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define HEAD STALLFILE_MAGIC "window 1000 2000 2 7 255 5 0 0\n"

static const char WHOLE[] = HEAD "text python\\n\\\\ train\n"
				 "text 0-1\n"
				 "note 1\n"
				 "process 100 1 1 1 1 0 0 4096 8192 60000 100000\n"
				 "thread 100 100 1 1 2 -1 5 6 S\n"
				 "counters 1500 100 1 2 3 4 5 6 7 8 9 10\n"
				 "event 1100 0 100 100 0 1 1 0 18446744073709551615 0 S\n"
				 "event 1200 1 100 100 0 1 0 0 0 0 -\n"
				 "end 2\n";

static int parse(const char *text, struct stall_recording *ret, struct err *err)
{
	return stallfile_parse("f", text, strlen(text), ret, err);
}

static void a_file_is_the_same_after_it_was_read_and_written(void **state)
{
	struct stall_recording recording;
	struct str text = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(parse(WHOLE, &recording, &err), 0);
	assert_string_equal(strtab_text(&recording.texts, 1), "python\n\\ train");
	assert_int_equal(recording.threads.data[0].cpu_ns, -1);
	assert_true(recording.events.data[0].address == UINT64_MAX);
	assert_int_equal(stallfile_write(&recording, &text), 0);
	assert_string_equal(text.data, WHOLE);
	str_done(&text);
	stallrecording_done(&recording);
}

static void each_error_says_where_and_what(void **state)
{
	static const struct {
		const char *text, *expected;
	} CASES[] = {
		{ "", "f:0: expected 'perftracker-stalls 1', found ''" },
		{ "{\"traceEvents\": []}", "expected 'perftracker-stalls 1', found '{" },
		{ STALLFILE_MAGIC "end 0\n", "f:21: expected 'window' first, found 'end 0'" },
		{ STALLFILE_MAGIC "window 2000 1000 2 7 255 5 0 0\n",
		  "one window of at most a day" },
		{ HEAD, "expected 'end', found ''" },
		{ HEAD "end 0", "expected a line end, found 'end 0'" },
		{ HEAD "end 1\n", "the count of the events" },
		{ HEAD "hello 1\n", "a line of a recording, found 'hello 1'" },
		{ HEAD "note x\n", "as many numbers as the word has" },
		{ HEAD "note 99999999999999999999999\n", "as many numbers" },
		{ HEAD "note 1\n", "the id of a text" },
		{ HEAD "text a\ntext a\n", "a text that did not come before" },
		{ HEAD "text a\\\n", "behind '\\'" },
		{ HEAD "thread 1 1 1 0 0 0 0 0 Q\n", "a state" },
		{ HEAD "thread 1 1 1 0 0 0 0 0 S\nthread 1 1 1 0 0 0 0 0 S\n", "each thread once" },
		{ HEAD "event 1 99 0 0 0 0 0 0 0 0 -\n", "a known kind" },
		{ HEAD "event 1 0 0 0 0 0 7 0 0 0 -\n", "ids of texts" },
		{ HEAD "event 9000000000000000000 0 0 0 0 0 0 0 0 0 -\n", "not behind the window" },
		{ HEAD "counters 5 1 0 0 0 0 0 0 0 0 0 0\ncounters 4 1 0 0 0 0 0 0 0 0 0 0\n",
		  "in the order of time" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		struct stall_recording recording;
		struct err err = { "" };

		assert_int_equal(parse(CASES[i].text, &recording, &err), -EINVAL);
		if (strstr(err.text, CASES[i].expected) == NULL)
			fail_msg("case %zu: %s", i, err.text);
	}
}

static void a_file_that_was_cut_is_an_error(void **state)
{
	struct stall_recording recording;
	struct err err;

	(void)state;
	for (size_t len = 0; len + 1 < sizeof(WHOLE); len++)
		assert_int_equal(stallfile_parse("f", WHOLE, len, &recording, &err), -EINVAL);
}

static void each_failed_allocation_is_an_error(void **state)
{
	struct stall_recording recording;
	struct err err;
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = parse(WHOLE, &recording, &err);
		allocations_left = -1;
		assert_true(n < 1000);
	}
	assert_int_equal(error, 0);
	stallrecording_done(&recording);
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
	struct stall_recording recording;
	struct err err;

	(void)state;
	assert_int_equal(stallfile_read("/nonexistent/x", &recording, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	assert_int_equal(stallfile_read("/dev/null", &recording, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_the_same_after_it_was_read_and_written),
		cmocka_unit_test(each_error_says_where_and_what),
		cmocka_unit_test(a_file_that_was_cut_is_an_error),
		cmocka_unit_test(each_failed_allocation_is_an_error),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
