/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small traces built by hand, for the tests of this folder: lanes, events in time order, arguments
 * and tracks, one call each. The test gives all times and adds events in the order of event.h.
 */
#pragma once

#include "base/test_random.h"
#include "base/vec.h"
#include "model/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Room for one more element of trace->field. */
#define TESTTRACE_GROW(array, cap, cnt) \
	assert_int_equal(               \
		vec_reserve_bytes((void **)&(array), &(cap), (cnt) + 1, sizeof(*(array))), 0)

_unused_ static void trace_start(struct trace *trace)
{
	assert_int_equal(trace_init(trace), 0);
	trace->meta.rank = 0;
	trace->meta.world_size = 1;
}

_unused_ static uint32_t trace_name(struct trace *trace, const char *text)
{
	uint32_t id = strtab_intern(&trace->strings, text, strlen(text));

	assert_int_not_equal(id, STRTAB_NONE);
	return id;
}

_unused_ static uint16_t trace_lane(struct trace *trace, enum lane_type type, int64_t pid,
				    int64_t tid)
{
	TESTTRACE_GROW(trace->lanes, trace->lane_cap, trace->lane_cnt);
	trace->lanes[trace->lane_cnt] =
		(struct lane){ .pid = pid, .tid = tid, .type = (uint8_t)type };
	return (uint16_t)trace->lane_cnt++;
}

/* Appends an event without parent and arguments; returns its index. */
_unused_ static uint32_t trace_event(struct trace *trace, enum event_kind kind, uint16_t lane,
				     const char *name, int64_t start_ns, int64_t dur_ns)
{
	TESTTRACE_GROW(trace->events, trace->event_cap, trace->event_cnt);
	trace->events[trace->event_cnt] = (struct event){
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.name = trace_name(trace, name),
		.parent = EVENT_NONE,
		.lane = lane,
		.kind = (uint8_t)kind,
	};
	trace->meta.has_device |= kind == KIND_KERNEL || kind == KIND_GPU_MEMOP;
	trace->meta.has_stacks |= kind == KIND_PYTHON;
	return (uint32_t)trace->event_cnt++;
}

/* Arguments of an event, all absent. Valid until the next call. */
_unused_ static struct event_args *trace_args(struct trace *trace, uint32_t event)
{
	struct event_args *args;

	TESTTRACE_GROW(trace->args, trace->args_cap, trace->args_cnt);
	args = &trace->args[trace->args_cnt++];
	*args = (struct event_args){ .bytes = -1, .elements = -1, .seq = -1, .group_size = -1 };
	trace->events[event].args = (uint32_t)trace->args_cnt;
	return args;
}

_unused_ static void trace_collective(struct trace *trace, uint32_t event, const char *what,
				      const char *group, int32_t size, int64_t seq)
{
	uint32_t what_id = trace_name(trace, what), group_id = trace_name(trace, group);
	struct event_args *args = trace_args(trace, event);

	args->collective = what_id;
	args->group = group_id;
	args->group_size = size;
	args->seq = seq;
}

_unused_ static struct track *trace_track(struct trace *trace, enum resource resource,
					  int64_t device, int64_t tid)
{
	struct track *track;

	TESTTRACE_GROW(trace->tracks, trace->track_cap, trace->track_cnt);
	track = &trace->tracks[trace->track_cnt++];
	*track = (struct track){ .resource = (uint8_t)resource, .device = device, .tid = tid };
	return track;
}

_unused_ static void track_sample(struct track *track, int64_t time_ns, double value)
{
	TESTTRACE_GROW(track->samples, track->cap, track->cnt);
	track->samples[track->cnt++] = (struct sample){ time_ns, value };
}
