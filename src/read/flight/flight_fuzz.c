/* SPDX-License-Identifier: Apache-2.0 */
/* Any flight log gives a trace that keeps the promises of event.h. */
#include "read/flight/flight.h"

#include "model/event_promises.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "flight_fuzz: %s\n", what);
	abort();
}

static void run(const struct flightlog *log, int64_t start_ns, int64_t end_ns)
{
	struct trace trace;

	if (flight_trace(log, start_ns, end_ns, &trace, NULL) < 0)
		return;
	if (flight_tracks(log, start_ns, end_ns, &trace) == 0) {
		const char *broken = event_promise_broken(&trace);

		check(broken == NULL, broken);
	}
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
