/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/flight.h"

#include "base/test_alloc.h"
#include "model/elements.h"
#include "read/common/test_events.h"

#include <errno.h>

static void frames_that_samples_share_go_on(void **state)
{
	struct fixture *x = *state;
	uint32_t load = child(x, x->step, "/job/data.py", "load");
	const struct trace *trace;
	const struct event *event;

	sample_at(x, 10, x->step);
	sample_at(x, 20, load);
	sample_at(x, 30, load);
	sample_at(x, 40, x->step);
	trace = make(x, 50 * MS);
	assert_int_equal(trace->event_cnt, 3);
	assert_event(trace, "train.py(1): <module>", 0, 0, 50);
	assert_event(trace, "train.py(9): step", 0, 0, 50);
	assert_event(trace, "data.py(5): load", 0, 15, 35);
	event = find(trace, "data.py(5): load", 0);
	assert_string_equal(event_name(trace, &trace->events[event->parent]), "train.py(9): step");
	assert_int_equal(trace->events[0].parent, EVENT_NONE);
	assert_true(trace->meta.has_stacks);
	assert_int_equal(trace->meta.rank, 3);
	assert_int_equal(trace->lanes[event->lane].tid, 71);
	assert_string_equal(strtab_text(&trace->strings, trace->lanes[event->lane].name),
			    "thread 71 (training)");
}

static void a_silence_of_many_periods_leaves_a_hole(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	for (int ms = 10; ms <= 100; ms += 10)
		sample_at(x, ms, x->step);
	for (int ms = 400; ms <= 490; ms += 10)
		sample_at(x, ms, x->step);
	trace = make(x, 500 * MS);
	assert_event(trace, "train.py(9): step", 0, 0, 105);
	assert_event(trace, "train.py(9): step", 1, 395, 500);
	assert_null(find(trace, "train.py(9): step", 2));
}

static void a_helper_that_stood_still_changed_just_before_the_next_sample(void **state)
{
	struct fixture *x = *state;
	uint32_t poll = child(x, 0, "/job/helper.py", "poll");
	uint32_t work = child(x, poll, "/job/helper.py", "work");
	const struct trace *trace;

	for (int ms = 0; ms <= 100; ms += 2)
		sample_at(x, ms, x->step);
	recorder_sample(x->f, 72, T0 + 10 * MS, poll, 0);
	recorder_sample(x->f, 72, T0 + 30 * MS, poll, 0);
	recorder_sample(x->f, 72, T0 + 48 * MS, work, 0);
	trace = make(x, 100 * MS);
	assert_event(trace, "helper.py(5): work", 0, 47, 49);
	assert_event(trace, "helper.py(5): poll", 0, 9, 49);
}

static void rare_samples_outside_of_the_window_do_not_reach_into_it(void **state)
{
	struct fixture *x = *state;
	uint32_t other = child(x, x->main, "/job/train.py", "evaluate");
	const struct trace *trace;

	sample_at(x, -90, other);
	sample_at(x, 1, x->step);
	sample_at(x, 2, x->step);
	sample_at(x, 3, x->step);
	sample_at(x, 95, other);
	trace = make(x, 5 * MS);
	assert_null(find(trace, "train.py(5): evaluate", 0));
	assert_event(trace, "train.py(9): step", 0, 0, 5);
}

static void a_mark_says_when_the_loader_began_and_ended(void **state)
{
	struct fixture *x = *state;
	uint32_t next =
		child(x, x->main, "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py",
		      "__next__");
	const struct trace *trace;

	sample_at(x, 10, x->step);
	recorder_mark(x->f, MARK_DATALOADER, T0 + 12 * MS, 0);
	sample_at(x, 20, next);
	sample_at(x, 30, next);
	recorder_mark(x->f, MARK_DATALOADER_END, T0 + 39 * MS, 27 * MS);
	sample_at(x, 40, x->step);
	trace = make(x, 50 * MS);
	assert_event(trace, "torch/utils/data/dataloader.py(5): __next__", 0, 12, 39);
	assert_event(trace, "train.py(9): step", 0, 0, 12);
	assert_event(trace, "train.py(9): step", 1, 39, 50);
}

static void a_frame_does_not_end_inside_of_an_operator(void **state)
{
	struct fixture *x = *state;
	uint32_t forward = child(x, x->step, "/job/net.py", "forward");
	uint32_t loss = child(x, x->step, "/job/net.py", "loss");
	const struct trace *trace;

	/* Between 10 and 20 the middle lies in aten::mm; nesting is least from 18 on. */
	sample_at(x, 10, forward);
	operator_at(x, "aten::mm", 9, 18);
	sample_at(x, 20, loss);
	operator_at(x, "aten::sub", 19, 23);
	sample_at(x, 30, loss);
	trace = make(x, 40 * MS);
	assert_event(trace, "net.py(5): forward", 0, 0, 18);
	assert_event(trace, "net.py(5): loss", 0, 18, 40);
	assert_event(trace, "aten::mm", 0, 9, 18);
}

static void frames_in_a_scope_of_the_user_begin_in_it(void **state)
{
	struct fixture *x = *state;
	uint32_t forward = child(x, x->step, "/job/net.py", "forward");
	const struct trace *trace;

	sample_at(x, 10, x->step);
	sample_at(x, 20, forward);
	sample_at(x, 30, x->step);
	annotation(x, "forward", 17, 23);
	trace = make(x, 40 * MS);
	assert_event(trace, "forward", 0, 17, 23);
	assert_event(trace, "net.py(5): forward", 0, 17, 23);
	/* The scope is outside: it comes first. */
	assert_true(find(trace, "forward", 0) < find(trace, "net.py(5): forward", 0));
}

static void scopes_of_torch_are_moments_beside_samples(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	sample_at(x, 10, x->step);
	sample_at(x, 20, x->step);
	annotation(x, "Optimizer.step#SGD.step", 12, 18);
	trace = make(x, 30 * MS);
	assert_event(trace, "Optimizer.step#SGD.step", 0, 18, 18);
}

static void scopes_of_torch_are_whole_without_samples(void **state)
{
	struct fixture *x = *state;

	annotation(x, "Optimizer.step#SGD.step", 12, 18);
	assert_event(make(x, 30 * MS), "Optimizer.step#SGD.step", 0, 12, 18);
}

static void waits_are_leaves_between_the_edges_of_operators(void **state)
{
	struct fixture *x = *state;
	uint32_t poll = FLIGHT_SAMPLE_WINDOW | FLIGHT_SAMPLE_SYSCALL | 0u << 4;
	const struct trace *trace;
	const struct event *wait;

	sample_at(x, 10, x->step);
	recorder_sample(x->f, 71, T0 + 20 * MS, x->step, FLIGHT_SAMPLE_GIL_WAIT);
	recorder_sample(x->f, 71, T0 + 30 * MS, x->step, FLIGHT_SAMPLE_GIL_WAIT);
	sample_at(x, 40, x->step);
	recorder_sample(x->f, 71, T0 + 50 * MS, x->step, poll);
	recorder_sample(x->f, 71, T0 + 60 * MS, x->step, 999u << 4 | FLIGHT_SAMPLE_SYSCALL);
	operator_at(x, "aten::copy_", 32, 48);
	operator_at(x, "aten::add", 58, 62);
	trace = make(x, 70 * MS);
	assert_event(trace, "<waiting for the GIL>", 0, 15, 32);
	assert_event(trace, "<system call 999>", 0, 58, 62);
	wait = find(trace, "<waiting for the GIL>", 0);
	assert_string_equal(event_name(trace, &trace->events[wait->parent]), "train.py(9): step");
	assert_true(find(trace, "aten::add", 0) < find(trace, "<system call 999>", 0));
	assert_event(trace, "train.py(9): step", 0, 0, 70);
}

static void names_are_those_of_kineto(void **state)
{
	static const struct {
		const char *file, *name, *expected;
	} cases[] = {
		{ "/v/lib/python3.11/site-packages/torch/nn/modules/module.py", "Module._call_impl",
		  "torch/nn/modules/module.py(5): _call_impl" },
		{ "/usr/lib/python3.12/threading.py", "Thread._bootstrap",
		  "threading.py(5): _bootstrap" },
		{ "/usr/lib/python3/dist-packages/numpy/core.py", "f", "numpy/core.py(5): f" },
		{ "/job/models/net.py", "Net.forward.<locals>.<lambda>",
		  "models/net.py(5): <lambda>" },
		{ "/elsewhere/util.py", "g", "/elsewhere/util.py(5): g" },
		{ "<frozen importlib._bootstrap>", "_find",
		  "<frozen importlib._bootstrap>(5): _find" },
		{ "/opt/perftracker/perftracker/_hook.py", "_next",
		  "perftracker/_hook.py(5): _next" },
		{ "./run.py", "h", "run.py(5): h" },
		{ "/home/u/lib/python-things/a.py", "k", "/home/u/lib/python-things/a.py(5): k" },
	};
	struct fixture *x = *state;
	uint32_t node = x->step;
	const struct trace *trace;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		node = child(x, node, cases[i].file, cases[i].name);
	sample_at(x, 10, node);
	trace = make(x, 20 * MS);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_non_null(find(trace, cases[i].expected, 0));
}

static void threads_of_our_own_are_left_out(void **state)
{
	struct fixture *x = *state;
	uint32_t thread = child(x, 0, "/usr/lib/python3.12/threading.py", "_bootstrap");
	uint32_t own = child(x, thread, "/x/perftracker/_source.py", "run");
	const struct trace *trace;

	recorder_sample(x->f, 72, T0 + 10 * MS, own, 0);
	recorder_sample(x->f, 72, T0 + 20 * MS, own, FLIGHT_SAMPLE_GIL_WAIT);
	recorder_sample(x->f, 73, T0 + 20 * MS, thread, 0);
	trace = make(x, 30 * MS);
	assert_int_equal(trace->event_cnt, 1);
	assert_string_equal(event_name(trace, &trace->events[0]), "threading.py(5): _bootstrap");
}

static void push_collective(struct fixture *x, bool in_window, int64_t from_ms, int64_t to_ms)
{
	uint32_t name = recorder_string(x->f, "gloo:all_reduce");
	uint32_t group = recorder_string(x->f, "dp");
	const struct ring_record records[] = {
		{ .time_ns = T0 + from_ms * MS,
		  .value = (to_ms - from_ms) * MS,
		  .kind = FLIGHT_COLLECTIVE,
		  .extra = name },
		{ .time_ns = T0, .value = 4096, .kind = FLIGHT_COLLECTIVE_ARGS, .extra = 17 },
		{ .time_ns = T0,
		  .value = (int64_t)4 << 32 | group,
		  .kind = FLIGHT_COLLECTIVE_GROUP,
		  .extra = 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		recorder_push(x->f, x->lane, in_window, records[i]);
}

/* Of the collective that was pushed last. */
static void set_ranks(struct fixture *x, uint16_t first, uint16_t stride, int32_t size)
{
	uint64_t head = atomic_load(&x->f->lanes[x->lane].head);
	struct ring_record *args = &x->f->records[x->lane][head - 2];
	struct ring_record *group = &x->f->records[x->lane][head - 1];

	args->detail = first;
	group->detail = stride;
	group->value = (int64_t)size << 32 | (uint32_t)group->value;
}

static void a_collective_carries_what_kineto_says_of_it(void **state)
{
	struct fixture *x = *state;
	const struct event_args *args;
	const struct event *event;
	const struct trace *trace;

	push_collective(x, false, 10, 20);
	push_collective(x, false, 25, 35); /* reaches over the window's end: kept whole */
	push_collective(x, false, 50, 60);
	trace = make(x, 30 * MS);
	assert_int_equal(trace->event_cnt, 2);
	assert_event(trace, "gloo:all_reduce", 1, 25, 35);
	event = find(trace, "gloo:all_reduce", 0);
	assert_int_equal(event->kind, KIND_ANNOTATION);
	args = event_args_borrow(trace, event);
	assert_non_null(args);
	assert_int_equal(args->bytes, 4096);
	assert_int_equal(args->seq, 17);
	assert_int_equal(args->group_size, 4);
	assert_string_equal(strtab_text(&trace->strings, args->group), "dp");
	assert_string_equal(strtab_text(&trace->strings, args->collective), "all_reduce");
	assert_string_equal(trace->meta.backend, "gloo");
}

static void a_group_with_ranks_at_even_distance_is_listed(void **state)
{
	static const struct {
		uint16_t first, stride;
		int32_t size;
		const char *ranks;
	} cases[] = {
		{ 8, 2, 3, "[8, 10, 12]" },
		{ 5, 1, 1, "[5]" },
		{ 0, 0, 3, "" },
		{ 7, 1, 0, "" },
		{ 65535, 65535, 2, "[65535, 131070]" },
	};
	struct fixture *x = *state;
	const struct trace *trace;
	size_t seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		push_collective(x, false, 2 * (int64_t)i, 2 * (int64_t)i + 1);
		set_ranks(x, cases[i].first, cases[i].stride, cases[i].size);
	}
	trace = make(x, 30 * MS);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++, seen++) {
		const struct event_args *args =
			event_args_borrow(trace, find(trace, "gloo:all_reduce", i));

		assert_string_equal(strtab_text(&trace->strings, args->group_ranks),
				    cases[i].ranks);
	}
	assert_int_equal(trace->event_cnt, seen);
}

static void a_long_list_of_ranks_leaves_out_what_is_before_the_last(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;
	const char *ranks;

	push_collective(x, false, 1, 2);
	set_ranks(x, 65535, 65535, INT32_MAX);
	trace = make(x, 30 * MS);
	ranks = strtab_text(&trace->strings,
			    event_args_borrow(trace, &trace->events[0])->group_ranks);
	assert_memory_equal(ranks, "[65535, 131070, ", 16);
	assert_non_null(strstr(ranks, ", 1966050, ..., 140735340806145]"));
}

static void operator_of(struct fixture *x, const char *name, int64_t at_ms, uint16_t code)
{
	recorder_push(x->f, x->lane, true,
		      (struct ring_record){ .time_ns = T0 + at_ms * MS,
					    .value = MS,
					    .kind = FLIGHT_OPERATOR,
					    .detail = code,
					    .extra = recorder_string(x->f, name) });
}

static int64_t elements_of(const struct trace *trace, const char *name, size_t n)
{
	const struct event *event = find(trace, name, n);
	const struct event_args *args;

	assert_non_null(event);
	args = event_args_borrow(trace, event);
	if (args == NULL)
		return -1;
	assert_int_equal(args->bytes, -1);
	assert_int_equal(args->collective, 0);
	return args->elements;
}

static void an_operator_has_its_elements_if_they_are_known(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	operator_of(x, "aten::mm", 1, elements_encode(48));
	operator_of(x, "aten::mm", 3, elements_encode(-1));
	operator_of(x, "aten::mm", 5, elements_encode(48));
	operator_of(x, "aten::add", 7, elements_encode(0));
	operator_of(x, "aten::mul", 8, elements_encode(3000000));
	operator_of(x, "aten::neg", 9, UINT16_MAX);
	trace = make(x, 10 * MS);
	assert_int_equal(elements_of(trace, "aten::mm", 0), 48);
	assert_int_equal(elements_of(trace, "aten::mm", 1), -1);
	assert_int_equal(elements_of(trace, "aten::mm", 2), 48);
	assert_int_equal(elements_of(trace, "aten::add", 0), 0);
	assert_in_range(elements_of(trace, "aten::mul", 0), 2998000, 3002000);
	assert_int_equal(elements_of(trace, "aten::neg", 0), -1);
}

static void exact_calls_are_nested_and_replace_samples(void **state)
{
	struct fixture *x = *state;
	uint32_t frame = recorder_frame(x->f, "/job/net.py", "forward", 3);
	uint32_t text = recorder_string(x->f, "<built-in method recv_into of socket object>");
	const struct trace *trace;
	const struct event *call;

	sample_at(x, 10, x->step);
	recorder_push(x->f, x->lane, true,
		      (struct ring_record){ .time_ns = T0 + 12 * MS,
					    .value = 3 * MS,
					    .kind = FLIGHT_C_CALL,
					    .extra = text });
	recorder_push(x->f, x->lane, true,
		      (struct ring_record){ .time_ns = T0 + 11 * MS,
					    .value = 8 * MS,
					    .kind = FLIGHT_PYTHON,
					    .extra = frame });
	trace = make(x, 30 * MS);
	assert_int_equal(trace->event_cnt, 2);
	call = find(trace, "<built-in method recv_into of socket object>", 0);
	assert_int_equal(call->kind, KIND_PYTHON);
	assert_string_equal(event_name(trace, &trace->events[call->parent]), "net.py(3): forward");
}

static void a_traced_c_function_is_inside_of_sampled_frames(void **state)
{
	struct fixture *x = *state;
	uint32_t text = recorder_string(x->f, "<built-in function read>");
	uint32_t load = child(x, x->step, "/job/data.py", "load");
	const struct trace *trace;

	sample_at(x, 10, load);
	recorder_push(x->f, x->lane, true,
		      (struct ring_record){ .time_ns = T0 + 8 * MS,
					    .value = 9 * MS,
					    .kind = FLIGHT_C_CALL,
					    .extra = text });
	sample_at(x, 20, x->step);
	trace = make(x, 30 * MS);
	assert_event(trace, "<built-in function read>", 0, 8, 17);
	assert_event(trace, "data.py(5): load", 0, 0, 17);
	assert_event(trace, "train.py(9): step", 0, 0, 30);
}

static void losses_are_reported(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	struct flightlog log;

	sample_at(x, 10, x->step);
	x->f->drops.late = 4;
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	x->f->drops.late = 6;
	x->f->drops.nodes = 3;
	x->f->drops.frames = 20;
	x->f->drops.strings = 5;
	x->f->drops.lanes = 7;
	x->f->drops.nested = 8;
	x->f->drops.threads = 9;
	x->f->drops.calls = 1000;
	recorder_sample(x->f, 71, T0, 99, 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	assert_int_equal(flight_trace(&log, T0, T0 + 20 * MS, &x->trace, NULL), 0);
	x->made = true;
	assert_int_equal(x->trace.drops.flight_late, 2);
	assert_int_equal(x->trace.drops.flight_tables, 23);
	assert_int_equal(x->trace.drops.flight_names, 5);
	assert_int_equal(x->trace.drops.flight_lanes, 7);
	assert_int_equal(x->trace.drops.flight_nested, 8);
	assert_int_equal(x->trace.drops.flight_threads, 9);
	assert_int_equal(x->trace.drops.unsupported_overlap, 1000);
	assert_int_equal(x->trace.drops.flight_invalid, 1);
	assert_int_equal(x->trace.drops.flight_lost, 0);
	flight_unmap(reader);
	flightlog_done(&log);
}

/* A stack that did not fit the recorder is a sample without frames: no function gets its time. */
static void a_stack_that_was_not_kept_is_no_others_time(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	sample_at(x, 10, x->step);
	sample_at(x, 20, 0);
	sample_at(x, 30, 0);
	sample_at(x, 40, x->step);
	trace = make(x, 50 * MS);
	assert_event(trace, "train.py(9): step", 0, 0, 15);
	assert_event(trace, "train.py(9): step", 1, 35, 50);
}

static void cpu_time_of_samples_becomes_a_track_once(void **state)
{
	struct fixture *x = *state;
	struct flightlog log;
	const struct flight *reader;

	for (int i = 1; i <= 3; i++) {
		struct ring_record record = { .time_ns = T0 + i * 10 * MS,
					      .value = 5 * MS,
					      .kind = FLIGHT_SAMPLE,
					      .extra = (uint64_t)71 << 32 | x->step };

		ring_push(x->f->samples, FLIGHT_SAMPLE_CNT, &x->f->sample_head, &record);
	}
	(void)make(x, 40 * MS);
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	for (int i = 0; i < 2; i++) /* the second time there is one */
		assert_int_equal(flight_tracks(&log, T0, T0 + 40 * MS, &x->trace), 0);
	assert_int_equal(x->trace.track_cnt, 1);
	assert_int_equal(x->trace.tracks[0].resource, RESOURCE_CPU_THREAD);
	assert_int_equal(x->trace.tracks[0].cnt, 2);
	assert_float_equal(x->trace.tracks[0].samples[0].value, 0.5, 1e-9);
	flight_unmap(reader);
	flightlog_done(&log);
}

static void every_failing_allocation_is_an_error(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	int failed = 0, ret = -ENOMEM;
	struct flightlog log;

	for (int i = 0; i < 5; i++)
		recorder_sample(x->f, 71, T0 + i * MS, i % 2 ? x->step : x->main,
				i % 3 ? 0 : FLIGHT_SAMPLE_GIL_WAIT);
	operator_of(x, "aten::mm", 1, 7);
	annotation(x, "forward", 1, 3);
	push_collective(x, true, 2, 4);
	recorder_mark(x->f, MARK_DATALOADER, T0, 0);
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	for (int left = 0; ret != 0; left++) {
		struct trace trace;

		allocations_left = left;
		ret = flight_trace(&log, T0, T0 + 9 * MS, &trace, NULL);
		if (ret == 0) {
			ret = flight_tracks(&log, T0, T0 + 9 * MS, &trace);
			trace_done(&trace);
		}
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		failed += ret != 0;
	}
	assert_true(failed > 20);
	flight_unmap(reader);
	flightlog_done(&log);
}

static void no_window_is_refused(void **state)
{
	struct flightlog log;
	struct trace trace;
	struct err err;

	(void)state;
	flightlog_init(&log);
	assert_int_equal(flight_trace(&log, 5, 5, &trace, &err), -EINVAL);
	assert_int_equal(flight_trace(&log, -5, 5, &trace, &err), -EINVAL);
	assert_int_equal(flight_trace(&log, 0, INT64_MAX, &trace, &err), -EINVAL);
	assert_int_equal(flight_trace(&log, 0, 5, &trace, &err), 0);
	assert_int_equal(trace.event_cnt, 0);
	trace_done(&trace);
	flightlog_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
		WITH(frames_that_samples_share_go_on),
		WITH(a_silence_of_many_periods_leaves_a_hole),
		WITH(a_helper_that_stood_still_changed_just_before_the_next_sample),
		WITH(rare_samples_outside_of_the_window_do_not_reach_into_it),
		WITH(a_mark_says_when_the_loader_began_and_ended),
		WITH(a_frame_does_not_end_inside_of_an_operator),
		WITH(frames_in_a_scope_of_the_user_begin_in_it),
		WITH(scopes_of_torch_are_moments_beside_samples),
		WITH(scopes_of_torch_are_whole_without_samples),
		WITH(waits_are_leaves_between_the_edges_of_operators),
		WITH(names_are_those_of_kineto),
		WITH(threads_of_our_own_are_left_out),
		WITH(a_collective_carries_what_kineto_says_of_it),
		WITH(a_group_with_ranks_at_even_distance_is_listed),
		WITH(a_long_list_of_ranks_leaves_out_what_is_before_the_last),
		WITH(an_operator_has_its_elements_if_they_are_known),
		WITH(exact_calls_are_nested_and_replace_samples),
		WITH(a_traced_c_function_is_inside_of_sampled_frames),
		WITH(losses_are_reported),
		WITH(a_stack_that_was_not_kept_is_no_others_time),
		WITH(cpu_time_of_samples_becomes_a_track_once),
		WITH(every_failing_allocation_is_an_error),
		cmocka_unit_test(no_window_is_refused),
#undef WITH
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
