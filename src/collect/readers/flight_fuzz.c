/* SPDX-License-Identifier: Apache-2.0 */
/* Any flight log gives a trace that keeps the promises of event.h. */
#include "collect/readers/flight.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "flight_fuzz: %s\n", what);
	abort();
}

static void check_event(const struct trace *trace, size_t i)
{
	const struct event *event = &trace->events[i];
	int64_t end_ns;

	check(event->dur_ns >= 0, "negative duration");
	check(!__builtin_add_overflow(event->start_ns, event->dur_ns, &end_ns), "end out of range");
	check(event->lane < trace->lane_cnt, "lane out of range");
	check(event->name < trace->strings.cnt, "name out of range");
	check(event->args <= trace->args_cnt, "arguments out of range");
	check(event->parent == EVENT_NONE || event->parent < trace->event_cnt,
	      "parent out of range");
	check(i == 0 || event[-1].start_ns < event->start_ns ||
		      (event[-1].start_ns == event->start_ns && event[-1].dur_ns >= event->dur_ns),
	      "events out of order");
}

static void check_tracks(const struct trace *trace)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		for (size_t j = 0; j < trace->tracks[i].cnt; j++)
			check(trace->tracks[i].samples[j].value >= 0 &&
				      trace->tracks[i].samples[j].value <= 1,
			      "share out of range");
	}
}

static void run(const struct flightlog *log, int64_t start_ns, int64_t end_ns)
{
	struct trace trace;

	if (flight_trace(log, start_ns, end_ns, &trace, NULL) < 0)
		return;
	if (flight_tracks(log, start_ns, end_ns, &trace) == 0)
		check_tracks(&trace);
	for (size_t i = 0; i < trace.event_cnt; i++)
		check_event(&trace, i);
	trace_done(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct flightlog log;

	if (flightlog_parse("fuzz", data, len, &log, NULL) < 0)
		return 0;
	run(&log, 0, FLIGHT_TIME_MAX_NS);
	run(&log, log.mono_ns, log.mono_ns + NSEC_PER_SEC);
	if (log.samples.cnt > 0)
		run(&log, log.samples.data[0].time_ns,
		    log.samples.data[log.samples.cnt - 1].time_ns);
	flightlog_done(&log);
	return 0;
}
