/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of JAX have the names and kinds that the same things have in Kineto's. */
#include "read/kineto/tracemaker.h"

#include "model/event_promises.h"
#include "read/kineto/kineto.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PROCESS(name) \
	"{\"ph\":\"M\",\"pid\":7,\"name\":\"process_name\",\"args\":{\"name\":\"" name "\"}},"
#define THREAD(tid, name)                                                            \
	"{\"ph\":\"M\",\"pid\":7,\"tid\":" tid ",\"name\":\"thread_name\",\"args\":" \
	"{\"name\":\"" name "\"}},"
#define EVENT(tid, name, ts, dur)                                                                \
	"{\"ph\":\"X\",\"pid\":7,\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur ",\"name\":\"" name \
	"\"}"
#define JAX                                                                                                              \
	"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" PROCESS("/host:CPU") THREAD("1", "python") THREAD(               \
		"2",                                                                                                     \
		"tf_XLAEigen/1") "{\"ph\":\"X\",\"pid\":7,\"tid\":1,\"ts\":0,\"dur\":90,\"name\":\"train\","             \
				 "\"args\":{\"step_num\":\"12\"}}," EVENT("1", "$train.py:8 step", "1", "80") "," EVENT( \
					 "1", "$time sleep", "2",                                                        \
					 "10") "," EVENT("1", "PjitFunction(f)", "20",                                   \
							 "9") "," EVENT("2", "fusion.3", "22",                           \
									"30") "," EVENT("2",                             \
											"end: fusion.3",                 \
											"52",                            \
											"0") "," EVENT("2",              \
												       "Buffer::Await",  \
												       "60",             \
												       "5") "]}"

static const struct event *find(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		if (strcmp(event_name(trace, &trace->events[i]), name) == 0)
			return &trace->events[i];
	}
	fail_msg("no event named %s", name);
	return NULL;
}

static void events_of_jax_have_the_kinds_of_torchs(void **state)
{
	const struct event *frame;
	struct trace trace;

	(void)state;
	assert_int_equal(kineto_read_memory(JAX, strlen(JAX), "jax", NULL, &trace, NULL), 0);
	assert_null(event_promise_broken(&trace));
	assert_int_equal(find(&trace, "ProfilerStep#12")->kind, KIND_ANNOTATION);
	frame = find(&trace, "train.py(8): step");
	assert_int_equal(frame->kind, KIND_PYTHON);
	assert_int_equal(frame->parent, EVENT_NONE);
	assert_int_equal(find(&trace, "<built-in function sleep>")->parent, frame - trace.events);
	assert_int_equal(find(&trace, "PjitFunction(f)")->kind, KIND_RUNTIME);
	assert_int_equal(find(&trace, "fusion.3")->kind, KIND_KERNEL);
	assert_int_equal(find(&trace, "end: fusion.3")->kind, KIND_OTHER);
	assert_int_equal(find(&trace, "Buffer::Await")->kind, KIND_RUNTIME);
	assert_int_equal(trace.drops.unknown_category, 0);
	trace_done(&trace);
}

static void traces_of_devices_are_refused(void **state)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{ "[" PROCESS("/device:TPU:0") PROCESS("/host:CPU") EVENT("1", "x", "1", "2") "]",
		  "one of JAX with events of a device" },
		{ "[" PROCESS("Ascend Hardware") EVENT("1", "x", "1", "2") "]",
		  "a trace_view.json of Ascend's profiler" },
	};
	struct trace trace;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;

		assert_int_equal(kineto_read_memory(text, strlen(text), "t", NULL, &trace, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, cases[i].what));
	}
}

static void names_of_any_form_are_frames_or_not(void **state)
{
	char name[256];

	(void)state;
	assert_false(tracemaker_name_frame("train.py:8 step", name, sizeof(name)));
	assert_false(tracemaker_name_frame("$", name, sizeof(name)));
	assert_false(tracemaker_name_frame("$time", name, sizeof(name)));
	assert_true(tracemaker_name_frame("$a:b.py:8 f g", name, sizeof(name)));
	assert_string_equal(name, "a:b.py(8): f g");
	assert_true(tracemaker_name_frame("$ ", name, sizeof(name)));
	assert_string_equal(name, "<built-in function >");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_jax_have_the_kinds_of_torchs),
		cmocka_unit_test(traces_of_devices_are_refused),
		cmocka_unit_test(names_of_any_form_are_frames_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
