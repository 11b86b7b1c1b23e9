/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/test_readers.h"

/* Windows that end inside every kind of token; 0 is the default. */
static const size_t windows[] = { 0, 64, 65, 67, 71, 79, 101, 256 };

struct trace read_ok(const char *text)
{
	struct trace trace = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		struct kineto_options opt = { .window_bytes = windows[i] };
		size_t event_cnt = trace.event_cnt;
		struct err err = { "" };

		trace_done(&trace);
		if (kineto_read_memory(text, strlen(text), "t.json", &opt, &trace, &err) != 0)
			fail_msg("window %zu: %s", windows[i], err.text);
		if (i > 0)
			assert_int_equal(trace.event_cnt, event_cnt);
	}
	return trace;
}

void check_fails_len(const char *text, size_t len, int error, const char *message)
{
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		struct kineto_options opt = { .window_bytes = windows[i] };
		struct trace trace = { .event_cnt = 77 };
		struct err err = { "" };

		assert_int_equal(kineto_read_memory(text, len, "t.json", &opt, &trace, &err),
				 -error);
		assert_string_equal(err.text, message);
		assert_int_equal(trace.event_cnt, 77);
	}
}
