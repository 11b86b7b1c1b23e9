/* SPDX-License-Identifier: Apache-2.0 */
/* Flight logs: from a worker's own recorder to its fingerprint. */
#include "base/clock.h"
#include "cmd/load.h"
#include "format/sidecar/sidecar.h"
#include "read/flight/flight.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAKE_MS \
	20 /* a lane's ring of a window holds more than that at a million records a second */
#define KEPT_MAX_BYTES (512u << 20)

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

/* Without a sidecar: what was recorded in windows, else all samples. */
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

/* One pair of clocks for all that goes into a trace. */
static void take_clocks(struct flightlog *log, const struct sidecar_header *header)
{
	if (header->mono_ns >= 0 && header->mono_ns <= FLIGHT_TIME_MAX_NS && header->wall_ns > 0 &&
	    header->wall_ns <= FLIGHT_TIME_MAX_NS) {
		log->mono_ns = header->mono_ns;
		log->wall_ns = header->wall_ns;
	}
	if (header->host[0] != '\0')
		(void)snprintf(log->host, sizeof(log->host), "%s", header->host);
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
	if (error == 0 && sidecar != NULL)
		error = sidecar_apply(sidecar, trace);
	return error == 0 ? flight_tracks(log, span->start_ns, span->end_ns, trace) : error;
}

int load_flight_trace(struct flightlog *log, const struct sidecar *sidecar, const char *source,
		      struct trace *ret, struct err *err)
{
	struct span span;
	int error;

	if (sidecar != NULL) {
		take_clocks(log, &sidecar->header);
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

/* --- a recorder that is being written --- */

/* Waits a little. Returns 1 at the end of the control file, 0 when it is not there yet, or -errno. */
static int control_ended(int fd)
{
	struct pollfd control = { .fd = fd, .events = POLLIN };
	char bytes[64];
	ssize_t got;
	int ready = poll(&control, 1, TAKE_MS);

	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (ready == 0)
		return 0;
	got = read(fd, bytes, sizeof(bytes));
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	return got == 0;
}

/* Takes records until the window is closed. */
static int follow_records(const struct load_follow *follow, struct flightlog *log, struct err *err)
{
	const struct flight *flight;
	int error = flight_map(follow->flight_fd, &flight, err), ended = 0;

	if (error < 0)
		return error;
	while (error == 0 && ended == 0) {
		error = flightlog_take(log, flight, true);
		ended = control_ended(follow->control_fd);
	}
	if (error == 0)
		error = flightlog_take(log, flight, true);
	flight_unmap(flight);
	if (error < 0)
		return err_set(err, -error, "recorder: out of memory");
	return ended < 0 ? err_set(err, -ended, "standard input: %s", strerror(-ended)) : 0;
}

/* The recorder's records, and what the daemon saw beside them, as files. */
static int keep_window(const char *path, const struct flightlog *log, const struct sidecar *sidecar,
		       struct err *err)
{
	_cleanup_free_ char *beside = NULL;
	int error = flightlog_write(log, path, err);

	if (error < 0 || sidecar == NULL)
		return error;
	if (asprintf(&beside, "%s" SIDECAR_SUFFIX, path) < 0)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	return sidecar_write(sidecar, beside, err);
}

static int summarize_log(const struct load_follow *follow, struct flightlog *log,
			 const struct sidecar *sidecar, const struct summarize_options *options,
			 struct fingerprint *ret, struct err *err)
{
	struct trace trace;
	int error = load_flight_trace(log, sidecar, "agent", &trace, err);

	if (error < 0)
		return error;
	if (follow->keep != NULL)
		error = keep_window(follow->keep, log, sidecar, err);
	/* Of two forms of the same millions of records one is enough. */
	flightlog_done(log);
	if (error == 0)
		error = load_summarize(&trace, sidecar, options, ret, err);
	trace_done(&trace);
	return error;
}

int load_follow(const struct load_follow *follow, const struct summarize_options *options,
		struct fingerprint *ret, struct err *err)
{
	bool with_sidecar = follow->sidecar_fd >= 0;
	struct sidecar sidecar = { 0 };
	struct flightlog log;
	char path[64];
	int error;

	flightlog_init(&log);
	log.record_max = KEPT_MAX_BYTES / sizeof(struct ring_record);
	error = follow_records(follow, &log, err);
	/* Opened anew it is read from its beginning, wherever the writer's offset is. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", follow->sidecar_fd);
	if (error == 0 && with_sidecar)
		error = sidecar_read(path, &sidecar, err);
	if (error == 0)
		error = summarize_log(follow, &log, with_sidecar ? &sidecar : NULL, options, ret,
				      err);
	sidecar_done(&sidecar);
	flightlog_done(&log);
	return error;
}
