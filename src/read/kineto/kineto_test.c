/* SPDX-License-Identifier: Apache-2.0 */
/* Every form in which writers give times, ids, categories, collectives and counters. */
#include "base/str.h"
#include "base/test_random.h"
#include "read/common/test_readers.h"

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

/* As a writer gives them that writes in the order of ends. */
static void of_equal_times_python_is_around_operators_and_these_around_calls(void **state)
{
	static const char *const names[] = { "read", "aten::item", "cudaMemcpy" };
	struct trace trace =
		read_ok(DOC(X_EVENT("cuda_runtime", "cudaMemcpy", "5", ", \"dur\": 2") "," X_EVENT(
			"cpu_op", "aten::item", "5", ", \"dur\": 2") "," X_EVENT("python_function",
										 "read", "5",
										 ", \"dur\": 2")));

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
		assert_int_equal(trace.events[i].scratch, 0);
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

static void omitted_and_repaired_events_are_counted(void **state)
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
		"{\"ph\":\"C\",\"pid\":\"GPU 3 Counters\",\"tid\":0,\"ts\":1,"
		"\"name\":\"pcie_rx\",\"args\":{\"pcie_rx\": 0.5}},"
		"{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"none\"}]}");

	(void)state;
	assert_int_equal(trace.track_cnt, 5);
	assert_int_equal(trace.tracks[4].resource, RESOURCE_PCIE_RX);
	assert_true(trace.tracks[4].samples[0].value == 0.5);
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

static void metadata_is_found_anywhere_in_the_file(void **state)
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

/* Of a long file: what follows the head isn't even looked at. */
static void a_head_ends_where_the_events_begin(void **state)
{
	static const char *const heads[] = {
		"{\"distributedInfo\": {\"rank\": 3}, \"host_name\": \"h\", \"traceEvents\": [{broken",
		"[{broken",
	};
	const struct kineto_options head = { .head_only = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct trace trace;

		assert_int_equal(
			kineto_read_memory(heads[i], strlen(heads[i]), "t", &head, &trace, NULL),
			0);
		assert_int_equal(trace.meta.rank, i == 0 ? 3 : RANK_UNKNOWN);
		assert_int_equal(trace.meta.host != NULL, i == 0);
		assert_int_equal(trace.event_cnt, 0);
		trace_done(&trace);
	}
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

/* Each event's duration is its number in the file, which identifies it. */
static char *shuffled_events(size_t cnt, int64_t spread, uint64_t seed)
{
	struct str text = { 0 };

	str_append(&text, "[");
	for (size_t i = 0; i < cnt; i++)
		str_printf(&text,
			   "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,"
			   "\"tid\":%d,\"ts\":%d,\"dur\":%zu}",
			   i > 0 ? "," : "", (int)test_below(&seed, 3),
			   (int)i + (int)test_below(&seed, spread), i);
	str_append(&text, "]");
	assert_int_equal(str_error(&text), 0);
	return text.data;
}

/* A spread of 1 is in order, a small one makes many short runs, a large one too many. */
static void events_in_any_order_are_sorted_and_none_is_lost(void **state)
{
	static const int64_t spreads[] = { 1, 3, 40, 1000000 };
	const size_t cnt = 20000;

	(void)state;
	for (size_t s = 0; s < ARRAY_SIZE(spreads); s++) {
		char *text = shuffled_events(cnt, spreads[s], 7 + s);
		bool *seen = calloc(cnt, sizeof(*seen));
		struct trace trace;

		assert_int_equal(kineto_read_memory(text, strlen(text), "t", NULL, &trace, NULL),
				 0);
		assert_int_equal(trace.event_cnt, cnt);
		for (size_t i = 0; i < cnt; i++) {
			const struct event *e = &trace.events[i];

			assert_true(i == 0 || e[-1].start_ns <= e->start_ns);
			assert_true(i == 0 || e[-1].start_ns < e->start_ns ||
				    e[-1].dur_ns >= e->dur_ns);
			assert_false(seen[e->dur_ns / 1000]);
			seen[e->dur_ns / 1000] = true;
		}
		trace_done(&trace);
		free(seen);
		free(text);
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
		cmocka_unit_test(of_equal_times_python_is_around_operators_and_these_around_calls),
		cmocka_unit_test(
			frames_find_their_caller_across_threads_and_absent_callers_are_none),
		cmocka_unit_test(rings_of_callers_are_cut),
		cmocka_unit_test(ids_of_64_bits_link_too),
		cmocka_unit_test(kernels_find_the_call_that_launched_them),
		cmocka_unit_test(lanes_keep_negative_and_text_ids_apart),
		cmocka_unit_test(categories_of_torch_1_8_have_their_kinds),
		cmocka_unit_test(omitted_and_repaired_events_are_counted),
		cmocka_unit_test(begin_and_end_events_pair_up_in_time_order),
		cmocka_unit_test(collectives_of_new_writers_carry_group_and_bytes),
		cmocka_unit_test(
			collectives_of_old_writers_are_read_from_concrete_inputs_and_names),
		cmocka_unit_test(counters_become_tracks_of_known_resources),
		cmocka_unit_test(metadata_is_found_anywhere_in_the_file),
		cmocka_unit_test(a_head_ends_where_the_events_begin),
		cmocka_unit_test(metadata_of_a_wrong_type_is_absent_and_counted),
		cmocka_unit_test(invalid_utf8_is_mended_and_counted),
		cmocka_unit_test(escapes_in_names_and_keys_are_resolved),
		cmocka_unit_test(of_duplicate_keys_the_last_one_counts),
		cmocka_unit_test(times_that_overflow_with_the_base_are_dropped),
		cmocka_unit_test(events_in_any_order_are_sorted_and_none_is_lost),
	};

	return cmocka_run_group_tests_name("forms", tests, NULL, NULL) + malformed_tests() +
	       shape_tests();
}
