/* SPDX-License-Identifier: Apache-2.0 */
/* Failures: text that is not JSON, limits, damaged gzip, files of other kinds, no memory. */
#include "base/str.h"
#include "base/test_alloc.h"
#include "read/common/test_readers.h"

#include <sys/stat.h>
#include <unistd.h>

static void check_fails(const char *text, const char *message)
{
	check_fails_len(text, strlen(text), EBADMSG, message);
}

static void text_that_is_not_json_fails_with_offset_expected_and_found(void **state)
{
	static const char *const cases[][2] = {
		{ "",
		  "t.json: byte 0: expected a trace (a JSON object or array), found the end of the text" },
		{ " \n",
		  "t.json: byte 2: expected a trace (a JSON object or array), found the end of the text" },
		{ "PK\003\004",
		  "t.json: byte 0: expected a trace (a JSON object or array), found 'P'" },
		{ "\xef\xbb[]",
		  "t.json: byte 0: expected a trace (a JSON object or array), found byte 0xef" },
		{ "\"text\"",
		  "t.json: byte 0: expected a trace (a JSON object or array), found '\"'" },
		{ "[] x", "t.json: byte 3: expected the end of the text, found 'x'" },
		{ "[", "t.json: byte 1: expected an event (an object), found the end of the text" },
		{ "[1]", "t.json: byte 1: expected an event (an object), found '1'" },
		{ "[{},]", "t.json: byte 4: expected a member after ',', found ']'" },
		{ "[{} {}]", "t.json: byte 4: expected ',' or ']', found '{'" },
		{ "{\"traceEvents\": {}}",
		  "t.json: byte 16: expected an array of events, found '{'" },
		{ "{\"traceEvents\": [], \"traceEvents\": []}",
		  "t.json: byte 35: expected one list of events, found '['" },
		{ "{a: 1}", "t.json: byte 1: expected a key in double quotes, found 'a'" },
		{ "{\"a\" 1}", "t.json: byte 5: expected ':' after a key, found '1'" },
		{ "{\"a\": 01}", "t.json: byte 7: expected a number as JSON writes it, found '1'" },
		{ "{\"a\": 1.}", "t.json: byte 8: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": -}", "t.json: byte 7: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": 1e}", "t.json: byte 8: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": 12", "t.json: byte 8: expected ',' or '}', found the end of the text" },
		{ "{\"a\": Nat}",
		  "t.json: byte 6: expected a value (an object, array, string, number, true, false or null), found 'N'" },
		{ "[{\"ts\": -Infinit}]",
		  "t.json: byte 9: expected a number as JSON writes it, found 'I'" },
		{ "{\"a\": tru}",
		  "t.json: byte 9: expected a value (an object, array, string, number, true, false or null), found '}'" },
		{ "{\"a\": \"\\x\"}",
		  "t.json: byte 8: expected one of \" \\ / b f n r t u after a backslash "
		  "in a string, found 'x'" },
		{ "{\"a\": \"\\u12g4\"}",
		  "t.json: byte 11: expected four hexadecimal digits after \\u, found 'g'" },
		{ "{\"a\": \"x\ny\"}",
		  "t.json: byte 8: expected the end of the string (control bytes must be "
		  "escaped), found byte 0x0a" },
		{ "{\"a\": \"abc",
		  "t.json: byte 10: expected the end of the string (control bytes must be "
		  "escaped), found the end of the text" },
		{ "[{\"args\": {\"b\": [1, 2}}]",
		  "t.json: byte 21: expected ',' or ']', found '}'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_fails(cases[i][0], cases[i][1]);
	check_fails_len("[\0]", 3, EBADMSG,
			"t.json: byte 1: expected an event (an object), found byte 0x00");
	check_fails_len("{\"a\": 1}", 8, EINVAL,
			"t.json: byte 8: expected a \"traceEvents\" array, found none");
}

/* before, then cnt times unit, then after. To be freed. */
static char *repeat(const char *before, const char *unit, size_t cnt, const char *after)
{
	struct str text = { 0 };

	str_append(&text, before);
	for (size_t i = 0; i < cnt; i++)
		str_append(&text, unit);
	str_append(&text, after);
	assert_int_equal(str_error(&text), 0);
	return text.data;
}

static void nesting_has_a_limit(void **state)
{
	char *text = repeat("{\"a\": ", "[", 100000, "");

	(void)state;
	check_fails(text, "t.json: byte 518: expected at most 512 levels of nesting, found '['");
	free(text);
	text = repeat("{\"traceEvents\": [], \"a\": ", "{\"b\": ", 100000, "");
	check_fails(text, "t.json: byte 3097: expected at most 512 levels of nesting, found '{'");
	free(text);
	text = repeat("[{\"args\": {\"Input Dims\": ", "[", 100000, "");
	check_fails(text, "t.json: byte 545: expected at most 512 levels of nesting, found '['");
	free(text);
}

static void numbers_without_a_value_cost_at_most_their_event(void **state)
{
	static const char *const words[] = { "NaN", "nan", "Infinity", "-Infinity", "inf", "-nan" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct str text = { 0 };
		struct trace trace;

		str_printf(&text,
			   "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\",\"x\":[null,%s]},"
			   "{\"ph\":\"X\",\"ts\":%s,\"dur\":1,\"name\":\"b\"},"
			   "{\"ph\":\"X\",\"ts\":3,\"dur\":%s,\"name\":\"c\"},"
			   "{\"ph\":\"X\",\"ts\":4,\"dur\":1,\"name\":\"d\","
			   "\"args\":{\"External id\":%s}}]",
			   words[i], words[i], words[i], words[i]);
		trace = read_ok(str_borrow(&text));
		assert_int_equal(trace.event_cnt, 3);
		assert_string_equal(event_name(&trace, &trace.events[0]), "a");
		assert_string_equal(event_name(&trace, &trace.events[1]), "c");
		assert_string_equal(event_name(&trace, &trace.events[2]), "d");
		assert_int_equal(trace.drops.bad_event, 1);
		assert_int_equal(trace.drops.missing_dur, 1);
		assert_int_equal(trace.drops.bad_value, 2);
		trace_done(&trace);
		str_done(&text);
	}
}

static void byte_order_marks_are_spaces_before_documents_and_events(void **state)
{
	struct trace trace = read_ok("\xef\xbb\xbf{\"traceEvents\": [\xef\xbb\xbf" X_EVENT(
		"cpu_op", "a", "1", ", \"dur\": 1") ", \xef\xbb\xbf" X_EVENT("cpu_op", "b", "3",
									     ", \"dur\": 1") "]}");

	(void)state;
	assert_int_equal(trace.event_cnt, 2);
	trace_done(&trace);
}

static void long_strings_are_skipped_but_not_kept(void **state)
{
	char *text = repeat("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\",\"note\":\"",
			    "\\u00e9y", 1000000, "\"}]");
	struct trace trace;

	(void)state;
	assert_int_equal(kineto_read_memory(text, strlen(text), "t.json", NULL, &trace, NULL), 0);
	assert_int_equal(trace.event_cnt, 1);
	trace_done(&trace);
	free(text);
	text = repeat("[{\"name\":\"", "x", 1048577, "\"}]");
	check_fails_len(
		text, strlen(text), EMSGSIZE,
		"t.json: byte 10: expected a name or number of at most 1048576 bytes, found a longer one");
	free(text);
	text = repeat("[{\"ts\":", "1", 1200000, "}]");
	check_fails_len(
		text, strlen(text), EMSGSIZE,
		"t.json: byte 7: expected a name or number of at most 1048576 bytes, found a longer one");
	free(text);
}

static void limits_on_text_and_memory_hold(void **state)
{
	struct kineto_options text_limit = { .max_text_bytes = 100, .window_bytes = 64 };
	struct kineto_options memory_limit = { .max_memory_bytes = 100000 };
	char *text = repeat("[{}", ",{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\"}", 5000, "]");
	struct trace trace;
	struct err err;

	(void)state;
	assert_int_equal(kineto_read_memory(text, strlen(text), "t", &text_limit, &trace, &err),
			 -EFBIG);
	assert_string_equal(err.text, "t: expected at most 100 bytes of text, found more");
	assert_int_equal(kineto_read_memory(text, strlen(text), "t", &memory_limit, &trace, &err),
			 -EFBIG);
	assert_non_null(strstr(err.text,
			       ": expected events and names of at most 100000 bytes, found more"));
	free(text);
}

/* One gzip member of text. Returns its length. */
static size_t gzip(const char *text, unsigned char *out, size_t cap)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)strlen(text) };

	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_out = out;
	stream.avail_out = (uInt)cap;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&stream);
	return cap - stream.avail_out;
}

static void gzip_members_in_a_row_are_one_text(void **state)
{
	unsigned char data[1024] = { 0 };
	size_t len = gzip("[" X_EVENT("cpu_op", "a", "1", ", \"dur\": 1"), data, sizeof(data));
	struct trace trace;

	(void)state;
	len += gzip("," X_EVENT("cpu_op", "b", "2", ", \"dur\": 1") "]", data + len,
		    sizeof(data) - len);
	assert_int_equal(kineto_read_memory(data, len, "t", NULL, &trace, NULL), 0);
	assert_int_equal(trace.event_cnt, 2);
	trace_done(&trace);
	/* Zero padding behind the last member is no error. */
	assert_int_equal(kineto_read_memory(data, len + 100, "t", NULL, &trace, NULL), 0);
	trace_done(&trace);
}

static void damaged_gzip_says_what_is_wrong(void **state)
{
	unsigned char data[1024] = { 0 };
	size_t len = gzip("[" X_EVENT("cpu_op", "a", "1", ", \"dur\": 1") "]", data, sizeof(data));
	struct trace trace;
	struct err err;

	(void)state;
	for (size_t cut = 2; cut < len; cut++) {
		struct kineto_options opt = { .window_bytes = cut % 2 == 0 ? 64 : 0 };

		assert_int_equal(kineto_read_memory(data, cut, "t", &opt, &trace, &err), -EBADMSG);
		assert_non_null(
			strstr(err.text, ": expected more gzip data, found the end of the file"));
	}
	data[len - 5] ^= 1;
	assert_int_equal(kineto_read_memory(data, len, "t", NULL, &trace, &err), -EBADMSG);
	data[len - 5] ^= 1;
	assert_non_null(strstr(err.text, ": expected "));
	data[len] = 'x';
	assert_int_equal(kineto_read_memory(data, len + 1, "t", NULL, &trace, &err), -EBADMSG);
	assert_string_equal(
		err.text,
		"t: byte 82: expected the end of the gzip data, found other bytes after it");
	data[12] ^= 0x55;
	data[13] ^= 0x55;
	assert_int_equal(kineto_read_memory(data, len, "t", NULL, &trace, &err), -EBADMSG);
}

static void every_prefix_of_a_trace_fails_cleanly(void **state)
{
	static const char text[] =
		"{\"distributedInfo\": {\"rank\": 1}, \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", "
		"\"name\": \"a\\u20acb\xe2\x82\xac\", \"ts\": 1.5e3, \"dur\": -0.25, \"args\": {\"grid\": [1, 2], "
		"\"x\": [true, false, null, {\"y\": {}}]}}], \"baseTimeNanoseconds\": 5}";

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		struct kineto_options opt = { .window_bytes = 64 };
		struct trace trace;
		struct err err;

		assert_int_equal(kineto_read_memory(text, len, "t", &opt, &trace, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "found the end of the text"));
	}
}

static void only_regular_files_are_read(void **state)
{
	char dir[] = "/tmp/kineto_test_XXXXXX", path[64];
	struct trace trace;
	struct err err;
	char expected[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(kineto_read(dir, NULL, &trace, &err), -EISDIR);
	(void)snprintf(expected, sizeof(expected), "%s: expected a file, found a directory", dir);
	assert_string_equal(err.text, expected);
	(void)snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(kineto_read(path, NULL, &trace, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected a regular file"));
	(void)unlink(path);
	assert_int_equal(kineto_read(path, NULL, &trace, &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(rmdir(dir), 0);
}

static void a_file_on_disk_is_read(void **state)
{
	static const char text[] = "[" X_EVENT("cpu_op", "a", "1", ", \"dur\": 1") "]";
	char path[] = "/tmp/kineto_test_XXXXXX";
	int fd = mkstemp(path);
	struct trace trace;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(kineto_read(path, NULL, &trace, NULL), 0);
	assert_string_equal(trace.meta.source, path);
	assert_int_equal(trace.meta.text_bytes, sizeof(text) - 1);
	trace_done(&trace);
	(void)unlink(path);
}

/* Uses every structure that allocates. */
static const char rich[] = "{\"host_name\": \"h\", \"deviceProperties\": [{\"name\": \"d\"}], \"traceEvents\": [" FRAME(
	"b", "2", "2",
	"1") "," FRAME("a", "1", "1",
		       "null") "," FRAME("w", "3", "18446744073709551615",
					 "2") "," HALF("B", "x", "1",
						       "1") "," HALF("E", "x", "1",
								     "2") "," X_EVENT("cuda_runtime",
										      "r", "4",
										      ", \"dur\": 1, \"args\": {\"correlation\": 9}") "," X_EVENT("kernel",
																		  "k\\u00e9",
																		  "5",
																		  ", \"dur\": 1, \"args\": {\"correlation\": 9, \"External id\": 1}") ","
																										      "{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"mem\",\"args\":{\"a\":1,\"b\":2}},"
																										      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"t\"}}"
																										      "], \"distributedInfo\": {\"backend\": \"nccl\"}}";

static void out_of_memory_anywhere_is_reported_and_leaks_nothing(void **state)
{
	unsigned char zipped[2048];
	size_t zipped_len = gzip(rich, zipped, sizeof(zipped));
	struct kineto_options opt = { .window_bytes = 64 };

	(void)state;
	allocations_fail_once = true;
	for (int form = 0; form < 2; form++) {
		int ret = -ENOMEM;
		long n = 0;

		for (; ret == -ENOMEM; n++) {
			struct trace trace = { .event_cnt = 77 };

			allocations_left = n;
			ret = form == 0 ? kineto_read_memory(rich, strlen(rich), "t", &opt, &trace,
							     NULL)
					: kineto_read_memory(zipped, zipped_len, "t", &opt, &trace,
							     NULL);
			allocations_left = -1;
			if (ret == 0)
				trace_done(&trace);
			else
				assert_int_equal(trace.event_cnt, 77);
		}
		assert_int_equal(ret, 0);
		assert_true(n > 25);
	}
	allocations_fail_once = false;
}

int malformed_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_is_not_json_fails_with_offset_expected_and_found),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(numbers_without_a_value_cost_at_most_their_event),
		cmocka_unit_test(byte_order_marks_are_spaces_before_documents_and_events),
		cmocka_unit_test(long_strings_are_skipped_but_not_kept),
		cmocka_unit_test(limits_on_text_and_memory_hold),
		cmocka_unit_test(gzip_members_in_a_row_are_one_text),
		cmocka_unit_test(damaged_gzip_says_what_is_wrong),
		cmocka_unit_test(every_prefix_of_a_trace_fails_cleanly),
		cmocka_unit_test(only_regular_files_are_read),
		cmocka_unit_test(a_file_on_disk_is_read),
		cmocka_unit_test(out_of_memory_anywhere_is_reported_and_leaks_nothing),
	};

	return cmocka_run_group_tests_name("malformed", tests, NULL, NULL);
}
