/* SPDX-License-Identifier: Apache-2.0 */
/* Events that match a shape give the same result as events that are parsed. */
#include "base/test_random.h"
#include "read/common/test_readers.h"

#define FRAME_OF(thread, name, ts, id)                                                             \
	"  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"" name                  \
	"\", \"pid\": 1, \"tid\": " thread ",\n    \"ts\": " ts                                    \
	", \"dur\": 2.500,\n    \"args\": {\n      \"Python parent id\": null, \"Python id\": " id \
	", \"Ev Idx\": " id "\n    }\n  }"
#define OPERATOR(name, ts, dims)                                                              \
	"  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                      \
	"\", \"pid\": 1, \"tid\": 2,\n    \"ts\": " ts ", \"dur\": 1,\n    \"args\": {\n"     \
	"      \"External id\": 7, \"Concrete Inputs\": [\"\", \"1\"], \"Input Dims\": " dims \
	"\n    }\n  }"
#define FLOW(id, ts)                                                                            \
	"  {\n    \"ph\": \"s\", \"id\": " id ", \"pid\": 1, \"tid\": 2, \"ts\": " ts ",\n    " \
	"\"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }"
#define COUNTER(ts, value)                                                           \
	"  {\n    \"ph\": \"C\", \"pid\": 1, \"tid\": 2, \"ts\": " ts ", \"name\": " \
	"\"mem\", \"args\": {\"used\": " value "}\n  }"

#define ROUND(t)                                                                  \
	FRAME_OF("2", "main", #t "1.000", #t "1")                                 \
	",\n" OPERATOR("aten::mm", #t "2.25", "[[2, 3], [3, 4]]") ",\n" FLOW(     \
		#t "3", #t "3.5") ",\n" FRAME_OF("3", "h\\u00e9lper", #t "4.125", \
						 #t "4") ",\n" COUNTER(#t "5", #t)

static const char alike[] = "{\"traceEvents\": [\n" ROUND(1) ",\n" ROUND(2) ",\n" ROUND(3) "\n]}";

/* What one reading gave. */
struct outcome {
	int error;
	struct err err;
	struct trace trace; /* without error */
};

static struct outcome outcome_of(const char *text, size_t len, size_t window_bytes)
{
	struct kineto_options opt = { .window_bytes = window_bytes };
	struct outcome o = { .err = { "" } };

	o.error = kineto_read_memory(text, len, "t", &opt, &o.trace, &o.err);
	return o;
}

static void assert_same_trace(const struct trace *a, const struct trace *b)
{
	assert_int_equal(a->event_cnt, b->event_cnt);
	assert_int_equal(a->args_cnt, b->args_cnt);
	assert_int_equal(a->strings.cnt, b->strings.cnt);
	assert_int_equal(a->track_cnt, b->track_cnt);
	assert_memory_equal(&a->drops, &b->drops, sizeof(a->drops));
	if (a->event_cnt > 0)
		assert_memory_equal(a->events, b->events, a->event_cnt * sizeof(*a->events));
	if (a->args_cnt > 0)
		assert_memory_equal(a->args, b->args, a->args_cnt * sizeof(*a->args));
}

/* In the smallest window hardly any text fits a shape: it is parsed. */
static bool reads_alike(const char *text, size_t len)
{
	struct outcome whole = outcome_of(text, len, 0), pieces = outcome_of(text, len, 64);

	assert_int_equal(whole.error, pieces.error);
	assert_string_equal(whole.err.text, pieces.err.text);
	if (whole.error < 0)
		return false;
	assert_same_trace(&whole.trace, &pieces.trace);
	trace_done(&whole.trace);
	trace_done(&pieces.trace);
	return true;
}

static void events_of_known_texts_are_as_if_parsed(void **state)
{
	struct outcome o = outcome_of(alike, strlen(alike), 0);

	(void)state;
	assert_true(reads_alike(alike, strlen(alike)));
	assert_int_equal(o.trace.event_cnt, 9);
	assert_int_equal(o.trace.lane_cnt, 2);
	assert_int_equal(o.trace.drops.no_interval, 3);
	assert_int_equal(o.trace.tracks[0].cnt, 3);
	assert_int_equal(o.trace.events[8].start_ns, 34125);
	assert_string_equal(event_name(&o.trace, &o.trace.events[8]), "h\xc3\xa9lper");
	assert_int_equal(o.trace.lanes[o.trace.events[8].lane].tid, 3);
	trace_done(&o.trace);
}

/* What followed two names before is only a guess, and no text is taken for another. */
static void a_name_is_distinguished_from_its_predicted_successor(void **state)
{
	static const char text[] =
		"[" FRAME_OF("2", "a", "1", "1") ",\n" FRAME_OF("2", "b", "2", "2") ",\n" FRAME_OF(
			"2", "ab", "3", "3") ",\n" FRAME_OF("2", "a",
							    "4", "4") ",\n" FRAME_OF("2", "b", "5", "5") ",\n" FRAME_OF("2", "abc", "6", "6") ",\n" FRAME_OF("2", "a", "7", "7") ",\n" FRAME_OF("2", "b", "8", "8") ",\n" FRAME_OF("2", "a\\u0062c", "9", "9") ",\n" FRAME_OF("2",
																																	      "a",
																																	      "10",
																																	      "10") ",\n" FRAME_OF("2", "b", "11", "11") ",\n" FRAME_OF("2",
																																									"", "12", "12") ",\n" FRAME_OF("2", "a", "13", "13") ",\n" FRAME_OF("2", "b", "14", "14") ",\n" FRAME_OF("2",
																																																						 "ab\\\"",
																																																						 "15",
																																																						 "15") "]";
	static const char *const thirds[] = { "ab", "abc", "abc", "", "ab\"" };
	struct outcome o = outcome_of(text, strlen(text), 0);

	(void)state;
	assert_int_equal(o.error, 0);
	assert_int_equal(o.trace.event_cnt, 15);
	for (size_t i = 0; i < o.trace.event_cnt; i++) {
		const char *name = event_name(&o.trace, &o.trace.events[i]);

		assert_string_equal(name, i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : thirds[i / 3]);
	}
	trace_done(&o.trace);
}

/* Eight digits are read at once, and the rest one by one. */
static void times_of_any_length_are_exact(void **state)
{
	(void)state;
	for (int digits = 1; digits <= 15; digits++) {
		char text[256];
		int64_t us = 987654321012345LL;
		struct outcome o;

		for (int i = digits; i < 15; i++)
			us /= 10;
		(void)snprintf(text, sizeof(text),
			       "[{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, "
			       "\"ts\": %lld.678, \"dur\": 0.009}]",
			       (long long)us);
		o = outcome_of(text, strlen(text), 0);
		assert_int_equal(o.error, 0);
		assert_int_equal(o.trace.events[0].start_ns, us * 1000 + 678);
		assert_int_equal(o.trace.events[0].dur_ns, 9);
		trace_done(&o.trace);
	}
}

static void equal_arguments_are_kept_once(void **state)
{
	struct outcome o = outcome_of(alike, strlen(alike), 0);

	(void)state;
	assert_int_equal(o.trace.args_cnt, 1);
	assert_int_equal(o.trace.args[0].elements, 18);
	trace_done(&o.trace);
}

static void damage_to_a_known_text_is_seen_where_it_is(void **state)
{
	/* The end of "args" of the second operator: its text is known by then. */
	const char *second = strstr(strstr(alike, "aten::mm") + 1, "aten::mm");
	const char *end = strstr(second, "  }");
	char text[sizeof(alike)];

	(void)state;
	memcpy(text, alike, sizeof(alike));
	text[end - alike + 3] = ';';
	assert_false(reads_alike(text, strlen(text)));
}

/* One byte replaced, left out or doubled. Returns the new length. */
static size_t mutate(char *text, size_t len, uint64_t *r)
{
	static const char bytes[] = "\"{}[],: 019eE.-\n\\antfulrsxC\x01\x80";
	size_t at = (size_t)test_below(r, (int64_t)len);

	switch (test_below(r, 3)) {
	case 0:
		text[at] = bytes[test_below(r, (int64_t)sizeof(bytes) - 1)];
		return len;
	case 1:
		memmove(text + at, text + at + 1, len - at - 1);
		return len - 1;
	default:
		memmove(text + at + 1, text + at, len - at);
		return len + 1;
	}
}

static void any_damage_gives_the_same_with_and_without_shapes(void **state)
{
	uint64_t r = 20261121;
	size_t usable = 0;

	(void)state;
	for (int round = 0; round < 6000; round++) {
		char text[sizeof(alike) + 8];
		size_t len = sizeof(alike) - 1;

		memcpy(text, alike, sizeof(alike));
		for (int64_t i = 0; i <= test_below(&r, 3); i++)
			len = mutate(text, len, &r);
		usable += reads_alike(text, len);
	}
	assert_true(usable > 500);
}

int shape_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_known_texts_are_as_if_parsed),
		cmocka_unit_test(a_name_is_distinguished_from_its_predicted_successor),
		cmocka_unit_test(times_of_any_length_are_exact),
		cmocka_unit_test(equal_arguments_are_kept_once),
		cmocka_unit_test(damage_to_a_known_text_is_seen_where_it_is),
		cmocka_unit_test(any_damage_gives_the_same_with_and_without_shapes),
	};

	return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
