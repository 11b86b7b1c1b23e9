/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes parse as a sidecar or return an error, and a merged trace keeps the invariants of
 * event.h.
 */
#include "format/sidecar/sidecar.h"

#include "model/event_promises.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "sidecar_fuzz: %s\n", what);
	abort();
}

/* Four nested frames. */
static bool make_trace(struct trace *trace)
{
	if (trace_init(trace) < 0 ||
	    vec_reserve_bytes((void **)&trace->lanes, &trace->lane_cap, 1, sizeof(*trace->lanes)) <
		    0 ||
	    vec_reserve_bytes((void **)&trace->events, &trace->event_cap, 4,
			      sizeof(*trace->events)) < 0)
		return false;
	trace->lanes[trace->lane_cnt++] =
		(struct lane){ .pid = 70, .tid = 71, .type = LANE_THREAD };
	for (uint32_t i = 0; i < 4; i++)
		trace->events[trace->event_cnt++] = (struct event){
			.start_ns = 1000 * (int64_t)i,
			.dur_ns = 10000 - 1000 * (int64_t)i,
			.parent = i == 0 ? EVENT_NONE : i - 1,
			.kind = KIND_PYTHON,
		};
	return true;
}

/* Frames keep their callers when events are added. */
static void check_frames(const struct trace *trace)
{
	size_t frames = 0;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];

		if (event->kind != KIND_PYTHON)
			continue;
		check(frames++ == 0 ||
			      (event->parent < i &&
			       trace->events[event->parent].start_ns == event->start_ns - 1000),
		      "a parent was lost");
	}
	check(frames == 4, "a frame was lost");
}

static void check_trace(const struct trace *trace)
{
	const char *broken = event_promise_broken(trace);

	check(broken == NULL, broken);
	check_frames(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sidecar_info info;
	struct sidecar sidecar;
	struct trace trace;
	char text[256];
	struct err err;

	if (sidecar_parse("fuzz", data, len, &sidecar, &err) < 0) {
		check(strncmp(err.text, "fuzz", 4) == 0, "an error without a place");
		return 0;
	}
	sidecar_summarize(&sidecar, &info);
	for (size_t i = 0; i < info.thief_cnt; i++)
		sidecar_thief_text(&info.thieves[i], text, sizeof(text));
	if (make_trace(&trace) && sidecar_apply(&sidecar, &trace) == 0)
		check_trace(&trace);
	trace_done(&trace);
	sidecar_done(&sidecar);
	return 0;
}
