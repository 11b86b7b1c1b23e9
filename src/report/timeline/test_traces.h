/* SPDX-License-Identifier: Apache-2.0 */
/* Traces built by hand, for the tests of the timeline. */
#pragma once

#include "base/vec.h"
#include "model/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

/* A thread (lane 0) and a stream (lane 1). */
_unused_ static void test_trace_init(struct trace *trace)
{
	assert_int_equal(trace_init(trace), 0);
	trace->lanes = calloc(2, sizeof(*trace->lanes));
	assert_non_null(trace->lanes);
	trace->lane_cnt = trace->lane_cap = 2;
	trace->lanes[0] = (struct lane){ .pid = 9, .tid = 71, .type = LANE_THREAD };
	trace->lanes[1] = (struct lane){ .pid = 0, .tid = 7, .type = LANE_STREAM };
	trace->meta.rank = RANK_UNKNOWN;
}

/* Events are added by start. */
_unused_ static void test_event(struct trace *trace, uint16_t lane, enum event_kind kind,
				const char *name, double from_ms, double to_ms)
{
	struct event *events = realloc(trace->events, (trace->event_cnt + 1) * sizeof(*events));

	assert_non_null(events);
	events[trace->event_cnt++] = (struct event){
		.start_ns = (int64_t)(from_ms * MS),
		.dur_ns = (int64_t)((to_ms - from_ms) * MS),
		.name = strtab_intern(&trace->strings, name, strlen(name)),
		.parent = EVENT_NONE,
		.lane = lane,
		.kind = (uint8_t)kind,
	};
	trace->events = events;
	trace->event_cap = trace->event_cnt;
}
