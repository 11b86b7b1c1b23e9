/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder with a training thread whose stack has two frames, and the trace that
 * the reader makes of it: for the tests of the flight log's reader.
 */
#pragma once

#include "format/flightlog/test_records.h"
#include "read/flight/flight.h"

#define MS NSEC_PER_MSEC
#define T0 (2000 * MS)	  /* the window's begin, CLOCK_MONOTONIC */
#define WALL (50000 * MS) /* what the wall clock is ahead */

struct fixture {
	struct test_recorder recorder;
	struct flight *f;
	uint32_t lane;
	uint32_t main, step; /* nodes */
	struct trace trace;
	bool made;
};

_unused_ static int open_fixture(void **state)
{
	static struct fixture x;

	x = (struct fixture){ .recorder = recorder_open() };
	x.f = x.recorder.flight;
	x.lane = recorder_lane(x.f, 71, "python");
	x.main = recorder_node(x.f, 0, recorder_frame(x.f, "/job/train.py", "<module>", 1));
	x.step = recorder_node(x.f, x.main, recorder_frame(x.f, "/job/train.py", "step", 9));
	*state = &x;
	return 0;
}

_unused_ static int close_fixture(void **state)
{
	struct fixture *x = *state;

	if (x->made)
		trace_done(&x->trace);
	recorder_close(&x->recorder);
	return 0;
}

/* The trace of [T0, T0 + length). */
_unused_ static const struct trace *make(struct fixture *x, int64_t length_ns)
{
	const struct flight *reader;
	struct flightlog log;

	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	assert_int_equal(log.drops.invalid, 0);
	flight_unmap(reader);
	assert_int_equal(flight_trace(&log, T0, T0 + length_ns, &x->trace, NULL), 0);
	flightlog_done(&log);
	x->made = true;
	return &x->trace;
}

/* "name" of the n-th event of this name, counted from 0; NULL: none. */
_unused_ static const struct event *find(const struct trace *trace, const char *name, size_t n)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		if (strcmp(event_name(trace, &trace->events[i]), name) == 0 && n-- == 0)
			return &trace->events[i];
	}
	return NULL;
}

_unused_ static void assert_event(const struct trace *trace, const char *name, size_t n,
				  int64_t from_ms, int64_t to_ms)
{
	const struct event *event = find(trace, name, n);

	assert_non_null(event);
	assert_int_equal(event->start_ns - WALL - T0, from_ms * MS);
	assert_int_equal(event->dur_ns, (to_ms - from_ms) * MS);
}

_unused_ static void sample_at(struct fixture *x, int64_t ms, uint32_t node)
{
	recorder_sample(x->f, 71, T0 + ms * MS, node, FLIGHT_SAMPLE_WINDOW);
}

_unused_ static uint32_t child(struct fixture *x, uint32_t parent, const char *file,
			       const char *name)
{
	return recorder_node(x->f, parent, recorder_frame(x->f, file, name, 5));
}

_unused_ static void annotation(struct fixture *x, const char *name, int64_t from_ms, int64_t to_ms)
{
	recorder_push(x->f, x->lane, true,
		      (struct ring_record){ .time_ns = T0 + from_ms * MS,
					    .value = (to_ms - from_ms) * MS,
					    .kind = FLIGHT_ANNOTATION,
					    .extra = recorder_string(x->f, name) });
}

_unused_ static void operator_at(struct fixture *x, const char *name, int64_t from_ms,
				 int64_t to_ms)
{
	recorder_operator(x->f, x->lane, name, T0 + from_ms * MS, T0 + to_ms * MS);
}
