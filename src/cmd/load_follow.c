/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load_follow.h"

#include "cmd/load.h"
#include "format/sidecar/sidecar.h"
#include "read/flight/flight.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A lane's ring in a window holds more than this at a million records a second. */
#define TAKE_MS 20
#define KEPT_MAX_BYTES (512u << 20)

/* Waits up to TAKE_MS. Returns 1 at the end of the control file, 0 before it, or -errno. */
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

/* Copies records into log until the window is closed. */
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

/* Writes the flight log, and the sidecar beside it. */
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
	int error = flight_window_trace(log, sidecar, "agent", &trace, err);

	if (error < 0)
		return error;
	if (follow->keep != NULL)
		error = keep_window(follow->keep, log, sidecar, err);
	/* The trace now holds these millions of records; frees the first copy. */
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
	/* A new descriptor starts at offset 0; sidecar_fd shares its offset with the writer. */
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
