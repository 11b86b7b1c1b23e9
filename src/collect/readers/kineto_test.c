/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/readers/kineto.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Allocations to let through before one fails; -1: all. */
static long alloc_budget = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool alloc_fails(void)
{
	if (alloc_budget < 0)
		return false;
	return alloc_budget-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(cnt, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return alloc_fails() ? NULL : __real_realloc(old, size);
}

/* Windows that end inside every kind of token; 0 is the default. */
static const size_t windows[] = { 0, 64, 65, 67, 71, 79, 101, 256 };

/* Reads text, which must be a trace whatever the window is. */
static struct trace read_ok(const char *text)
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

/* Reads text[len], which must fail with error and say message. */
static void check_fails_len(const char *text, size_t len, int error, const char *message)
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

static void check_fails(const char *text, const char *message)
{
	check_fails_len(text, strlen(text), EBADMSG, message);
}

/* The first event of the given name. */
static const struct event *find(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		if (strcmp(event_name(trace, &trace->events[i]), name) == 0)
			return &trace->events[i];
	}
	fail_msg("no event named %s", name);
	return NULL;
}

static const struct event_args *find_args(const struct trace *trace, const char *name)
{
	const struct event_args *args = event_args_borrow(trace, find(trace, name));

	assert_non_null(args);
	return args;
}

#define X_EVENT(cat, name, ts, rest)                              \
	"{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name \
	"\", \"pid\": 1, \"tid\": 2, \"ts\": " ts rest "}"
#define DOC(events) "{\"traceEvents\": [" events "]}"

static void times_of_all_three_forms_become_exact_nanoseconds(void **state)
{
	struct trace trace = read_ok(DOC(X_EVENT("cpu_op", "whole", "1646775076630920", ", \"dur\": 5") "," X_EVENT(
		"cpu_op", "frac", "1712195495519689.047",
		", \"dur\": 0.001") "," X_EVENT("cpu_op", "short", "1712195495519690.5",
						", \"dur\": 1e3") "," X_EVENT("cpu_op", "round",
									      "1712195495519691.0005",
									      ", \"dur\": 0.00049") "," X_EVENT("cpu_op",
														"digits",
														"1712195495519692.00149999999999999999999",
														", \"dur\": 2")));

	(void)state;
	assert_int_equal(find(&trace, "whole")->start_ns, 1646775076630920000);
	assert_int_equal(find(&trace, "whole")->dur_ns, 5000);
	assert_int_equal(find(&trace, "frac")->start_ns, 1712195495519689047);
	assert_int_equal(find(&trace, "frac")->dur_ns, 1);
	assert_int_equal(find(&trace, "short")->start_ns, 1712195495519690500);
	assert_int_equal(find(&trace, "short")->dur_ns, 1000000);
	assert_int_equal(find(&trace, "round")->start_ns, 1712195495519691001);
	assert_int_equal(find(&trace, "round")->dur_ns, 0);
	assert_int_equal(find(&trace, "digits")->start_ns, 1712195495519692001);
	trace_done(&trace);
}

static void base_time_is_added_before_and_after_the_events(void **state)
{
	static const char *const texts[] = {
		"{\"baseTimeNanoseconds\": 1767189312000000000, \"traceEvents\": [" X_EVENT(
			"cpu_op", "a", "3743411230047.485", ", \"dur\": 67.320") "]}",
		"{\"traceEvents\": [" X_EVENT(
			"cpu_op", "a", "3743411230047.485",
			", \"dur\": 67.320") "], \"baseTimeNanoseconds\": 1767189312000000000}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct trace trace = read_ok(texts[i]);

		assert_int_equal(trace.meta.base_ns, 1767189312000000000);
		assert_int_equal(trace.events[0].start_ns, 1770932723230047485);
		assert_int_equal(trace.events[0].dur_ns, 67320);
		trace_done(&trace);
	}
}

static void a_bare_array_is_a_trace(void **state)
{
	struct trace trace = read_ok("[" X_EVENT("cpu_op", "a", "1", ", \"dur\": 1") "]\n");

	(void)state;
	assert_int_equal(trace.event_cnt, 1);
	assert_int_equal(trace.meta.rank, RANK_UNKNOWN);
	trace_done(&trace);
}

static void an_empty_list_of_events_is_a_trace(void **state)
{
	struct trace trace = read_ok(DOC(""));

	(void)state;
	assert_int_equal(trace.event_cnt, 0);
	assert_int_equal(trace.meta.text_bytes, strlen(DOC("")));
	trace_done(&trace);
}

static void events_are_sorted_by_start_then_longest_then_file_order(void **state)
{
	static const char *const names[] = { "first", "outer", "inner", "inner2", "last" };
	struct trace trace = read_ok(DOC(X_EVENT("cpu_op", "last", "9", ", \"dur\": 1") "," X_EVENT(
		"cpu_op", "inner", "5",
		", \"dur\": 1") "," X_EVENT("cpu_op", "inner2", "5",
					    ", \"dur\": 1") ","
							    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"outer\", \"pid\": 0, \"tid\": 7, "
							    "\"ts\": 5, \"dur\": 3}," X_EVENT(
								    "cpu_op", "first", "1",
								    ", \"dur\": 1")));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(event_name(&trace, &trace.events[i]), names[i]);
	trace_done(&trace);
}

static void frames_find_their_caller_across_threads_and_absent_callers_are_none(void **state)
{
	struct trace trace = read_ok(DOC(
		"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"hook\", \"pid\": 1, \"tid\": 9,"
		" \"ts\": 3, \"dur\": 1, \"args\": {\"Python parent id\": 29937646, \"Python id\": 29937668}}," X_EVENT(
			"python_function", "backward", "1",
			", \"dur\": 8, \"args\": {\"Python id\": 29937646, \"Python parent id\": null}") "," X_EVENT("python_function",
														     "orphan",
														     "4",
														     ", \"dur\": 1, \"args\": {\"Python id\": 5, \"Python parent id\": 4}")));

	(void)state;
	assert_int_equal(find(&trace, "hook")->parent, find(&trace, "backward") - trace.events);
	assert_int_equal(find(&trace, "backward")->parent, EVENT_NONE);
	assert_int_equal(find(&trace, "orphan")->parent, EVENT_NONE);
	assert_true(find(&trace, "hook")->lane != find(&trace, "backward")->lane);
	assert_true(trace.meta.has_stacks);
	trace_done(&trace);
}

#define FRAME(name, ts, id, parent)                                                             \
	X_EVENT("python_function", name, ts,                                                    \
		", \"dur\": 1, \"args\": {\"Python id\": " id ", \"Python parent id\": " parent \
		"}")

static void rings_of_callers_are_cut(void **state)
{
	struct trace trace =
		read_ok(DOC(FRAME("a", "1", "1", "3") "," FRAME("b", "2", "2", "1") "," FRAME(
			"c", "3", "3", "2") "," FRAME("self", "4", "4", "4") "," FRAME("child", "5",
										       "5", "3")));

	(void)state;
	for (size_t i = 0; i < trace.event_cnt; i++) {
		uint32_t at = (uint32_t)i, steps = 0;

		while (at != EVENT_NONE && steps++ < 10)
			at = trace.events[at].parent;
		assert_true(steps < 10);
		assert_int_equal(trace.events[i].reserved, 0);
	}
	assert_int_equal(trace.drops.bad_value, 1);
	trace_done(&trace);
}

static void ids_of_64_bits_link_too(void **state)
{
	struct trace trace = read_ok(DOC(FRAME("a", "1", "18446744073709551615", "null") "," FRAME(
		"b", "2", "18446744073709551614",
		"18446744073709551615") "," FRAME("c", "3", "-7",
						  "18446744073709551614") "," FRAME("d", "4",
										    "4026531840",
										    "-7")));

	(void)state;
	assert_int_equal(find(&trace, "b")->parent, 0);
	assert_int_equal(find(&trace, "c")->parent, 1);
	assert_int_equal(find(&trace, "d")->parent, 2);
	assert_int_equal(trace.drops.bad_value, 0);
	trace_done(&trace);
}

static void kernels_find_the_call_that_launched_them(void **state)
{
	struct trace trace = read_ok(DOC(
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, \"ts\": 1,"
		" \"dur\": 3, \"args\": {\"correlation\": 23451, \"grid\": [4, 2, 1], \"block\": [128, 1, 1]}}," X_EVENT(
			"cuda_runtime", "cudaLaunchKernel", "2",
			", \"dur\": 1, \"args\": {\"correlation\": 23451}") "," X_EVENT("cuda_runtime",
											"sync", "3",
											", \"dur\": 1, \"args\": {\"correlation\": 0}") ","
																	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"m\", \"pid\": 0, \"tid\": 7, \"ts\": 5,"
																	" \"dur\": 3, \"args\": {\"correlation\": 99, \"bytes\": 4096}}"));

	(void)state;
	assert_int_equal(find(&trace, "k")->parent,
			 find(&trace, "cudaLaunchKernel") - trace.events);
	assert_int_equal(find(&trace, "cudaLaunchKernel")->parent, EVENT_NONE);
	assert_int_equal(find(&trace, "m")->parent, EVENT_NONE);
	assert_int_equal(find_args(&trace, "k")->elements, 4 * 2 * 128);
	assert_int_equal(find_args(&trace, "m")->bytes, 4096);
	assert_int_equal(trace.lanes[find(&trace, "k")->lane].type, LANE_STREAM);
	assert_true(trace.meta.has_device);
	trace_done(&trace);
}

static void lanes_keep_negative_and_text_ids_apart(void **state)
{
	struct trace trace = read_ok(DOC(
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"neg\",\"pid\":1,\"tid\":-975440128,\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"text\",\"pid\":1,\"tid\":\"25738\",\"ts\":2,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":0,\"tid\":\"stream 7\",\"ts\":3,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"span\",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","
		"\"ts\":4,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"same\",\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"over\",\"pid\":-1,\"tid\":0,\"ts\":6,\"dur\":1},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":-975440128,\"args\":{\"name\":\"old\"}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":-975440128,\"args\":{\"name\":\"watchdog\"}}"));
	const struct lane *lanes = trace.lanes;

	(void)state;
	assert_int_equal(trace.lane_cnt, 6);
	assert_int_equal(lanes[find(&trace, "neg")->lane].tid, -975440128);
	assert_string_equal(strtab_text(&trace.strings, lanes[find(&trace, "neg")->lane].name),
			    "watchdog");
	assert_int_equal(lanes[find(&trace, "text")->lane].tid, 25738);
	assert_int_equal(lanes[find(&trace, "k")->lane].tid, 7);
	assert_int_equal(lanes[find(&trace, "k")->lane].type, LANE_STREAM);
	assert_int_equal(lanes[find(&trace, "same")->lane].type, LANE_THREAD);
	assert_int_equal(lanes[find(&trace, "span")->lane].type, LANE_OTHER);
	assert_string_equal(strtab_text(&trace.strings, lanes[find(&trace, "span")->lane].name),
			    "PyTorch Profiler");
	assert_int_equal(lanes[find(&trace, "over")->lane].type, LANE_OTHER);
	trace_done(&trace);
}

static void categories_of_torch_1_8_have_their_kinds(void **state)
{
	struct trace trace = read_ok(DOC(
		X_EVENT("Operator", "ProfilerStep#5", "1", ", \"dur\": 9") "," X_EVENT("Operator", "aten::mm", "2", ", \"dur\": 1") "," X_EVENT(
			"Runtime", "cudaLaunchKernel", "3",
			", \"dur\": 1") "," X_EVENT("Kernel", "k", "4",
						    ", \"dur\": 1") "," X_EVENT("Memcpy", "copy",
										"5",
										", \"dur\": 1") "," X_EVENT("Memset",
													    "set",
													    "6",
													    ", \"dur\": 1")));

	(void)state;
	assert_int_equal(find(&trace, "ProfilerStep#5")->kind, KIND_ANNOTATION);
	assert_int_equal(find(&trace, "aten::mm")->kind, KIND_OPERATOR);
	assert_int_equal(find(&trace, "cudaLaunchKernel")->kind, KIND_RUNTIME);
	assert_int_equal(find(&trace, "k")->kind, KIND_KERNEL);
	assert_int_equal(find(&trace, "copy")->kind, KIND_GPU_MEMOP);
	assert_int_equal(find(&trace, "set")->kind, KIND_GPU_MEMOP);
	trace_done(&trace);
}

static void what_is_left_out_or_mended_is_counted(void **state)
{
	struct trace trace = read_ok(DOC(
		X_EVENT("news", "unknown", "1", ", \"dur\": 1") "," X_EVENT("cpu_op", "nodur", "2", "") "," X_EVENT(
			"cpu_op", "negative", "3",
			", \"dur\": -4.5") ","
					   "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"nots\",\"pid\":1,\"tid\":2,\"dur\":1},"
					   "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":1}," X_EVENT(
						   "cpu_op", "huge", "1e308",
						   ", \"dur\": 1") "," X_EVENT("cpu_op", "word",
									       "\"12\"",
									       ", \"dur\": 1") ","
											       "{\"ph\":\"Q\",\"name\":\"q\",\"ts\":1},{\"name\":\"none\",\"ts\":1},"
											       "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":1},{\"ph\":\"s\",\"id\":1,\"ts\":1},"
											       "{\"ph\":\"M\",\"name\":\"process_labels\",\"args\":{\"labels\":\"CPU\"}}"));

	(void)state;
	assert_int_equal(trace.event_cnt, 3);
	assert_int_equal(trace.drops.unknown_category, 1);
	assert_int_equal(find(&trace, "unknown")->kind, KIND_OTHER);
	assert_int_equal(trace.drops.missing_dur, 1);
	assert_int_equal(find(&trace, "nodur")->dur_ns, 0);
	assert_int_equal(trace.drops.negative_dur, 1);
	assert_int_equal(find(&trace, "negative")->dur_ns, 0);
	assert_int_equal(trace.drops.bad_event, 4);
	assert_int_equal(trace.drops.bad_value, 2);
	assert_int_equal(trace.drops.unknown_phase, 2);
	assert_int_equal(trace.drops.no_interval, 2);
	trace_done(&trace);
}

#define HALF(ph, name, tid, ts)                                                              \
	"{\"ph\":\"" ph "\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid \
	",\"ts\":" ts "}"

static void begin_and_end_events_pair_up_in_time_order(void **state)
{
	struct trace trace =
		read_ok(DOC(HALF("E", "outer", "1", "9") "," HALF("B", "outer", "1", "1") "," HALF(
			"B", "in", "1",
			"2") "," HALF("B", "other", "2",
				      "3") "," HALF("E", "in", "1",
						    "4") "," HALF("E", "none", "3",
								  "1") ","
								       "{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":5}," HALF(
									       "B", "open", "4",
									       "7")));

	(void)state;
	assert_int_equal(trace.event_cnt, 3);
	assert_int_equal(find(&trace, "outer")->dur_ns, 8000);
	assert_int_equal(find(&trace, "in")->dur_ns, 2000);
	assert_int_equal(find(&trace, "other")->dur_ns, 2000);
	assert_int_equal(trace.drops.unmatched_begin, 1);
	assert_int_equal(trace.drops.unmatched_end, 1);
	trace_done(&trace);
}

static void collectives_of_new_writers_carry_group_and_bytes(void **state)
{
	static const char args[] =
		", \"dur\": 5, \"args\": {\"External id\": 12, \"Collective name\": \"_allgather_base\", "
		"\"dtype\": \"BFloat16\", \"In msg nelems\": 25136, \"Out msg nelems\": 201088, "
		"\"Process Group Name\": \"3\", \"Process Group Ranks\": \"[0, 1]\", \"Group size\": 2, "
		"\"Seq\": 41, \"Input Dims\": [[1, 25136], [], [[2, 3], [4]]]}";
	char text[1024];
	struct trace trace;
	const struct event_args *found;

	(void)state;
	(void)snprintf(text, sizeof(text),
		       "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\","
		       "\"pid\":1,\"tid\":1,\"ts\":1%s}]",
		       args);
	trace = read_ok(text);
	found = find_args(&trace, "record_param_comms");
	assert_string_equal(strtab_text(&trace.strings, found->collective), "_allgather_base");
	assert_string_equal(strtab_text(&trace.strings, found->group), "3");
	assert_string_equal(strtab_text(&trace.strings, found->group_ranks), "[0, 1]");
	assert_int_equal(found->group_size, 2);
	assert_int_equal(found->seq, 41);
	assert_int_equal(found->bytes, 201088 * 2);
	assert_int_equal(found->elements, 25136 + 6 + 4);
	assert_int_equal(found->external_id, 12);
	trace_done(&trace);
}

static void collectives_of_old_writers_are_read_from_concrete_inputs_and_names(void **state)
{
	struct trace trace = read_ok(DOC(
		"{\"args\": {\"Concrete Inputs\": [\"\", \"337\", \"93825133356096\", \"3\", \"\", \"[]\", "
		"\"[]\", \"8\"]}, \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", "
		"\"ts\": 1, \"dur\": 1}," X_EVENT(
			"kernel", "ncclKernel_ReduceScatter_RING_LL_Sum_float", "2",
			", \"dur\": 1, \"args\": {\"correlation\": 3}") "," X_EVENT("user_annotation",
										    "gloo:all_reduce",
										    "3",
										    ", \"dur\": 1, \"args\": "
										    "{\"Input type\": [\"float\"], \"Input Dims\": [[321271]]}")));
	const struct event_args *args = find_args(&trace, "record_param_comms");

	(void)state;
	assert_int_equal(args->seq, 337);
	assert_int_equal(args->group_size, 8);
	assert_string_equal(strtab_text(&trace.strings, args->group), "93825133356096");
	args = find_args(&trace, "ncclKernel_ReduceScatter_RING_LL_Sum_float");
	assert_string_equal(strtab_text(&trace.strings, args->collective), "reduce_scatter");
	args = find_args(&trace, "gloo:all_reduce");
	assert_string_equal(strtab_text(&trace.strings, args->collective), "all_reduce");
	assert_int_equal(args->bytes, 321271 * 4);
	trace_done(&trace);
}

static void counters_become_tracks_of_known_resources(void **state)
{
	struct trace trace = read_ok(
		"{\"baseTimeNanoseconds\": 1000, \"traceEvents\": ["
		"{\"ph\":\"C\",\"pid\":\"GPU 3 Counters\",\"tid\":0,\"ts\":2,"
		"\"name\":\"sm__cycles_active.avg.pct_of_peak_sustained_elapsed\",\"args\":{\"\": 75.5}},"
		"{\"ph\":\"C\",\"pid\":\"GPU 3 Counters\",\"tid\":0,\"ts\":1,"
		"\"name\":\"sm__cycles_active.avg.pct_of_peak_sustained_elapsed\",\"args\":{\"\": 120}},"
		"{\"args\":{\"value\": 0.25},\"name\":\"cpu_thread\",\"ph\":\"C\",\"pid\":1,\"tid\":42,\"ts\":1},"
		"{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"mem\",\"args\":{\"a\":1,\"b\":2e3,\"c\":\"x\"}},"
		"{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"mem\",\"args\":{\"a\":1e999}},"
		"{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"none\"}]}");

	(void)state;
	assert_int_equal(trace.track_cnt, 4);
	assert_int_equal(trace.tracks[0].resource, RESOURCE_SM_ACTIVE);
	assert_int_equal(trace.tracks[0].device, 3);
	assert_int_equal(trace.tracks[0].cnt, 2);
	assert_int_equal(trace.tracks[0].samples[0].time_ns, 2000);
	assert_true(trace.tracks[0].samples[0].value == 1.0);
	assert_true(trace.tracks[0].samples[1].value == 0.755);
	assert_int_equal(trace.tracks[1].resource, RESOURCE_CPU_THREAD);
	assert_int_equal(trace.tracks[1].tid, 42);
	assert_true(trace.tracks[1].samples[0].value == 0.25);
	assert_string_equal(strtab_text(&trace.strings, trace.tracks[3].name), "mem.b");
	assert_int_equal(trace.tracks[3].resource, RESOURCE_OTHER);
	assert_true(trace.tracks[3].samples[0].value == 2000.0);
	assert_int_equal(trace.drops.bad_value, 2);
	assert_int_equal(trace.drops.bad_event, 2);
	trace_done(&trace);
}

static void metadata_is_found_wherever_it_stands(void **state)
{
	struct trace trace = read_ok(
		"{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA B200\"}, {\"name\": \"x\"}], "
		"\"host_name\": \"h\\u00e9\\ud83d\\ude00\", \"traceEvents\": [], \"INFO\": [\"a\", {\"b\": [null]}], "
		"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, "
		"\"pg_config\": [{\"ranks\": [0, 1]}]}}");

	(void)state;
	assert_int_equal(trace.meta.rank, 3);
	assert_int_equal(trace.meta.world_size, 8);
	assert_string_equal(trace.meta.backend, "nccl");
	assert_string_equal(trace.meta.device_name, "NVIDIA B200");
	assert_string_equal(trace.meta.host, "h\xc3\xa9\xf0\x9f\x98\x80");
	assert_string_equal(trace.meta.source, "t.json");
	trace_done(&trace);
}

static void metadata_of_a_wrong_type_is_absent_and_counted(void **state)
{
	struct trace trace = read_ok("{\"distributedInfo\": {\"rank\": \"x\", \"world_size\": 0, "
				     "\"backend\": 1}, \"traceEvents\": [], \"host_name\": [1], "
				     "\"deviceProperties\": {}, \"baseTimeNanoseconds\": 1e400}");

	(void)state;
	assert_int_equal(trace.meta.rank, RANK_UNKNOWN);
	assert_int_equal(trace.meta.world_size, -1);
	assert_null(trace.meta.backend);
	assert_null(trace.meta.host);
	assert_int_equal(trace.drops.bad_value, 6);
	trace_done(&trace);
}

static void invalid_utf8_is_mended_and_counted(void **state)
{
	struct trace trace = read_ok(DOC(X_EVENT(
		"cpu_op",
		"a\xff"
		"b\xc0\xaf",
		"1",
		", \"dur\": 1") "," X_EVENT("cpu_op", "\xed\xa0\x80", "2",
					    ", \"dur\": 1, \"note\": \"\xfe\"") "," X_EVENT("cpu_op",
											    "lone\\ud800x",
											    "3",
											    ", \"dur\": 1") "," X_EVENT("cpu_op",
															"nul\\u0000",
															"4",
															", \"dur\": 1") "," X_EVENT("cpu_op",
																		    "\xe2\x82\xac\xf0\x9f\x98\x80",
																		    "5",
																		    ", \"dur\": 1")));
	const char *mark = "\xef\xbf\xbd";
	char text[64];

	(void)state;
	(void)snprintf(text, sizeof(text), "a%sb%s%s", mark, mark, mark);
	assert_string_equal(event_name(&trace, &trace.events[0]), text);
	(void)snprintf(text, sizeof(text), "lone%sx", mark);
	assert_string_equal(event_name(&trace, &trace.events[2]), text);
	assert_string_equal(event_name(&trace, &trace.events[4]), "\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_int_equal(trace.drops.bad_utf8, 4);
	trace_done(&trace);
}

static void escapes_in_names_and_keys_are_resolved(void **state)
{
	struct trace trace = read_ok(
		"{\"trace\\u0045vents\" : [{\"p\\u0068\" :\t\"X\", \"name\"\n:\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u20AC\","
		" \"ts\" : 1 , \"dur\": 1, \"cat\": \"cpu_\\u006fp\"} ] }");

	(void)state;
	assert_string_equal(event_name(&trace, &trace.events[0]), "\"\\/\b\f\n\r\t\xe2\x82\xac");
	assert_int_equal(trace.events[0].kind, KIND_OPERATOR);
	trace_done(&trace);
}

static void of_duplicate_keys_the_last_one_counts(void **state)
{
	struct trace trace =
		read_ok("[{\"ph\":\"X\",\"name\":\"a\",\"name\":\"b\",\"ts\":1,\"ts\":2,\"dur\":1,"
			"\"cat\":\"x\",\"cat\":\"cpu_op\",\"args\":{\"bytes\":1},\"args\":{}}]");

	(void)state;
	assert_int_equal(trace.events[0].start_ns, 2000);
	assert_string_equal(event_name(&trace, &trace.events[0]), "b");
	assert_int_equal(trace.events[0].args, 0);
	assert_int_equal(trace.drops.unknown_category, 0);
	trace_done(&trace);
}

static void times_that_overflow_with_the_base_are_dropped(void **state)
{
	struct trace trace =
		read_ok("{\"baseTimeNanoseconds\": 9223372036854775807, \"traceEvents\": [" X_EVENT(
			"cpu_op", "a", "1", ", \"dur\": 1") "," X_EVENT("cpu_op", "b", "-1",
									", \"dur\": 0") "]}");

	(void)state;
	assert_int_equal(trace.event_cnt, 1);
	assert_string_equal(event_name(&trace, &trace.events[0]), "b");
	assert_int_equal(trace.drops.bad_event, 1);
	trace_done(&trace);
}

static void text_that_is_not_json_fails_with_offset_expected_and_found(void **state)
{
	static const char *const cases[][2] = {
		{ "",
		  "t.json:0: expected a trace (a JSON object or array), found the end of the text" },
		{ " \n",
		  "t.json:2: expected a trace (a JSON object or array), found the end of the text" },
		{ "PK\003\004", "t.json:0: expected a trace (a JSON object or array), found 'P'" },
		{ "\xef\xbb\xbf[]",
		  "t.json:0: expected a trace (a JSON object or array), found byte 0xef" },
		{ "\"text\"", "t.json:0: expected a trace (a JSON object or array), found '\"'" },
		{ "[] x", "t.json:3: expected the end of the text, found 'x'" },
		{ "[", "t.json:1: expected an event (an object), found the end of the text" },
		{ "[1]", "t.json:1: expected an event (an object), found '1'" },
		{ "[{},]", "t.json:4: expected a member after ',', found ']'" },
		{ "[{} {}]", "t.json:4: expected ',' or ']', found '{'" },
		{ "{\"traceEvents\": {}}", "t.json:16: expected an array of events, found '{'" },
		{ "{\"traceEvents\": [], \"traceEvents\": []}",
		  "t.json:35: expected one list of events, found '['" },
		{ "{a: 1}", "t.json:1: expected a key in double quotes, found 'a'" },
		{ "{\"a\" 1}", "t.json:5: expected ':' after a key, found '1'" },
		{ "{\"a\": 01}", "t.json:7: expected a number as JSON writes it, found '1'" },
		{ "{\"a\": 1.}", "t.json:8: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": -}", "t.json:7: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": 1e}", "t.json:8: expected a number as JSON writes it, found '}'" },
		{ "{\"a\": 12", "t.json:8: expected ',' or '}', found the end of the text" },
		{ "{\"a\": NaN}",
		  "t.json:6: expected a value (an object, array, string, number, true, false or null; "
		  "NaN and Infinity are not JSON), found 'N'" },
		{ "[{\"ts\": -Infinity}]",
		  "t.json:9: expected a number as JSON writes it, found 'I'" },
		{ "{\"a\": tru}",
		  "t.json:9: expected a value (an object, array, string, number, true, false or null; "
		  "NaN and Infinity are not JSON), found '}'" },
		{ "{\"a\": \"\\x\"}",
		  "t.json:8: expected one of \" \\ / b f n r t u after a backslash "
		  "in a string, found 'x'" },
		{ "{\"a\": \"\\u12g4\"}",
		  "t.json:11: expected four hexadecimal digits after \\u, found 'g'" },
		{ "{\"a\": \"x\ny\"}",
		  "t.json:8: expected the end of the string (control bytes must be "
		  "escaped), found byte 0x0a" },
		{ "{\"a\": \"abc",
		  "t.json:10: expected the end of the string (control bytes must be "
		  "escaped), found the end of the text" },
		{ "[{\"args\": {\"b\": [1, 2}}]", "t.json:21: expected ',' or ']', found '}'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_fails(cases[i][0], cases[i][1]);
	check_fails_len("[\0]", 3, EBADMSG,
			"t.json:1: expected an event (an object), found byte 0x00");
	check_fails_len("{\"a\": 1}", 8, EINVAL,
			"t.json:8: expected a \"traceEvents\" array, found none");
}

/* before, then cnt times unit, then after. */
static char *repeat(const char *before, const char *unit, size_t cnt, const char *after)
{
	size_t unit_len = strlen(unit), at = strlen(before);
	char *text = malloc(at + cnt * unit_len + strlen(after) + 1);

	assert_non_null(text);
	memcpy(text, before, at);
	for (size_t i = 0; i < cnt; i++, at += unit_len)
		memcpy(text + at, unit, unit_len);
	memcpy(text + at, after, strlen(after) + 1);
	return text;
}

static void nesting_has_a_limit(void **state)
{
	char *text = repeat("{\"a\": ", "[", 100000, "");

	(void)state;
	check_fails(text, "t.json:518: expected at most 512 levels of nesting, found '['");
	free(text);
	text = repeat("{\"traceEvents\": [], \"a\": ", "{\"b\": ", 100000, "");
	check_fails(text, "t.json:3097: expected at most 512 levels of nesting, found '{'");
	free(text);
	text = repeat("[{\"args\": {\"Input Dims\": ", "[", 100000, "");
	check_fails(text, "t.json:545: expected at most 512 levels of nesting, found '['");
	free(text);
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
		"t.json:10: expected a name or number of at most 1048576 bytes, found a longer one");
	free(text);
	text = repeat("[{\"ts\":", "1", 1200000, "}]");
	check_fails_len(
		text, strlen(text), EMSGSIZE,
		"t.json:7: expected a name or number of at most 1048576 bytes, found a longer one");
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
	assert_string_equal(err.text,
			    "t:82: expected the end of the gzip data, found other bytes after it");
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
	for (int form = 0; form < 2; form++) {
		int ret = -ENOMEM;
		long n = 0;

		for (; ret == -ENOMEM; n++) {
			struct trace trace = { .event_cnt = 77 };

			alloc_budget = n;
			ret = form == 0 ? kineto_read_memory(rich, strlen(rich), "t", &opt, &trace,
							     NULL)
					: kineto_read_memory(zipped, zipped_len, "t", &opt, &trace,
							     NULL);
			alloc_budget = -1;
			if (ret == 0)
				trace_done(&trace);
			else
				assert_int_equal(trace.event_cnt, 77);
		}
		assert_int_equal(ret, 0);
		assert_true(n > 25);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_all_three_forms_become_exact_nanoseconds),
		cmocka_unit_test(base_time_is_added_before_and_after_the_events),
		cmocka_unit_test(a_bare_array_is_a_trace),
		cmocka_unit_test(an_empty_list_of_events_is_a_trace),
		cmocka_unit_test(events_are_sorted_by_start_then_longest_then_file_order),
		cmocka_unit_test(
			frames_find_their_caller_across_threads_and_absent_callers_are_none),
		cmocka_unit_test(rings_of_callers_are_cut),
		cmocka_unit_test(ids_of_64_bits_link_too),
		cmocka_unit_test(kernels_find_the_call_that_launched_them),
		cmocka_unit_test(lanes_keep_negative_and_text_ids_apart),
		cmocka_unit_test(categories_of_torch_1_8_have_their_kinds),
		cmocka_unit_test(what_is_left_out_or_mended_is_counted),
		cmocka_unit_test(begin_and_end_events_pair_up_in_time_order),
		cmocka_unit_test(collectives_of_new_writers_carry_group_and_bytes),
		cmocka_unit_test(
			collectives_of_old_writers_are_read_from_concrete_inputs_and_names),
		cmocka_unit_test(counters_become_tracks_of_known_resources),
		cmocka_unit_test(metadata_is_found_wherever_it_stands),
		cmocka_unit_test(metadata_of_a_wrong_type_is_absent_and_counted),
		cmocka_unit_test(invalid_utf8_is_mended_and_counted),
		cmocka_unit_test(escapes_in_names_and_keys_are_resolved),
		cmocka_unit_test(of_duplicate_keys_the_last_one_counts),
		cmocka_unit_test(times_that_overflow_with_the_base_are_dropped),
		cmocka_unit_test(text_that_is_not_json_fails_with_offset_expected_and_found),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(long_strings_are_skipped_but_not_kept),
		cmocka_unit_test(limits_on_text_and_memory_hold),
		cmocka_unit_test(gzip_members_in_a_row_are_one_text),
		cmocka_unit_test(damaged_gzip_says_what_is_wrong),
		cmocka_unit_test(every_prefix_of_a_trace_fails_cleanly),
		cmocka_unit_test(only_regular_files_are_read),
		cmocka_unit_test(a_file_on_disk_is_read),
		cmocka_unit_test(out_of_memory_anywhere_is_reported_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
