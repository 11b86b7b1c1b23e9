/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the window and the clocks of a flight log's trace. */
#include "format/sidecar/bounds.h"
#include "read/flight/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span {
	int64_t start_ns, end_ns;
};

static void extend(struct span *span, int64_t start_ns, int64_t end_ns)
{
	span->start_ns = MIN(span->start_ns, start_ns);
	span->end_ns = MAX(span->end_ns, end_ns);
}

static void extend_by_samples(struct span *span, const struct flightlog *log, bool windows_only)
{
	vec_foreach(record, &log->samples) {
		if (!windows_only ||
		    (record->kind == FLIGHT_SAMPLE && (record->detail & FLIGHT_SAMPLE_WINDOW)))
			extend(span, record->time_ns, record->time_ns);
	}
}

/* From the first to the last record of the log's windows; of a log without one, all samples. */
static struct span guess_window(const struct flightlog *log)
{
	struct span span = { INT64_MAX, INT64_MIN };

	extend_by_samples(&span, log, true);
	vec_foreach(lane, &log->lanes) {
		vec_foreach(record, &lane->window) {
			if (!flight_kind_is_detail(record->kind))
				extend(&span, record->time_ns, record->time_ns + record->value);
		}
	}
	if (span.end_ns <= span.start_ns)
		extend_by_samples(&span, log, false);
	return span;
}

/* Sidecar and log must give the same wall time to one moment of CLOCK_MONOTONIC. */
static void adopt_clocks(struct flightlog *log, const struct sidecar_header *header)
{
	if (header->mono_ns >= 0 && header->mono_ns <= FLIGHT_TIME_MAX_NS && header->wall_ns > 0 &&
	    header->wall_ns <= FLIGHT_TIME_MAX_NS) {
		log->mono_ns = header->mono_ns;
		log->wall_ns = header->wall_ns;
	}
	if (header->host[0] != '\0')
		(void)snprintf(log->host, sizeof(log->host), "%s", header->host);
}

/* A log without a sidecar: its marks alone tell of iterations. */
static int add_iterations(const struct flightlog *log, const struct span *span, struct trace *trace)
{
	struct sidecar side = { .header = { .pid = log->pid,
					    .tid = log->training_tid,
					    .mono_ns = log->mono_ns,
					    .wall_ns = log->wall_ns,
					    .start_ns = span->start_ns,
					    .end_ns = span->end_ns } };
	struct bounds bounds = { 0 };
	const struct bounds_view no_detector = { 0 };
	int ret;

	vec_foreach(mark, &log->marks) {
		if (mark->time_ns <= span->end_ns)
			bounds_mark(&bounds, mark, &no_detector, &side);
	}
	ret = sidecar_apply(&side, trace);
	sidecar_done(&side);
	return ret;
}

static int finish_trace(const struct flightlog *log, const struct sidecar *sidecar,
			const struct span *span, const char *source, struct trace *trace)
{
	char *copy = strdup(source);
	int error = copy != NULL ? 0 : -ENOMEM;

	if (copy != NULL) {
		free(trace->meta.source);
		trace->meta.source = copy;
	}
	if (error == 0)
		error = sidecar != NULL ? sidecar_apply(sidecar, trace)
					: add_iterations(log, span, trace);
	return error == 0 ? flight_tracks(log, span->start_ns, span->end_ns, trace) : error;
}

int flight_window_trace(struct flightlog *log, const struct sidecar *sidecar, const char *source,
			struct trace *ret, struct err *err)
{
	struct span span;
	int error;

	if (sidecar != NULL) {
		adopt_clocks(log, &sidecar->header);
		span = (struct span){ sidecar->header.start_ns, sidecar->header.end_ns };
	} else {
		span = guess_window(log);
	}
	error = flight_trace(log, span.start_ns, span.end_ns, ret, err);
	if (error < 0)
		return error;
	error = finish_trace(log, sidecar, &span, source, ret);
	if (error < 0) {
		trace_done(ret);
		return err_set(err, -error, "%s: out of memory", source);
	}
	return 0;
}

int flight_read_input(const struct reader_input *input, struct trace *ret, struct err *err)
{
	struct flightlog log;
	int error = flightlog_read(input->file, &log, err);

	if (error < 0)
		return error;
	error = flight_window_trace(&log, input->sidecar, input->source, ret, err);
	flightlog_done(&log);
	return error;
}
