/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a sidecar or an error, and what joins a trace keeps the promises of event.h. */
#include "format/sidecar.h"

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

/* Four frames, each called by the one before. */
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

static void check_events(const struct trace *trace)
{
	size_t frames = 0;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];
		int64_t end_ns;

		check(event->dur_ns >= 0, "negative duration");
		check(!__builtin_add_overflow(event->start_ns, event->dur_ns, &end_ns),
		      "end out of range");
		check(event->lane < trace->lane_cnt, "lane out of range");
		check(event->name < trace->strings.cnt, "name out of range");
		check(i == 0 || event[-1].start_ns < event->start_ns ||
			      (event[-1].start_ns == event->start_ns &&
			       event[-1].dur_ns >= event->dur_ns),
		      "events out of order");
		if (event->kind != KIND_PYTHON)
			continue;
		check(frames++ == 0 ||
			      (event->parent < i &&
			       trace->events[event->parent].start_ns == event->start_ns - 1000),
		      "a parent was lost");
	}
	check(frames == 4, "a frame was lost");
}

static void check_tracks(const struct trace *trace)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		const struct track *track = &trace->tracks[i];

		for (size_t j = 0; j < track->cnt; j++) {
			check(track->samples[j].value >= 0 && track->samples[j].value <= 1,
			      "share out of range");
			check(j == 0 || track->samples[j - 1].time_ns <= track->samples[j].time_ns,
			      "samples out of order");
		}
	}
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
	if (make_trace(&trace) && sidecar_apply(&sidecar, &trace) == 0) {
		check_events(&trace);
		check_tracks(&trace);
	}
	trace_done(&trace);
	sidecar_done(&sidecar);
	return 0;
}
