/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon of one host: takes the marks of its workers, watches each with a
 * detector, writes orders into their blocks, samples the host while a window is
 * open, and turns each finished trace into a fingerprint. It runs nothing in a
 * worker; the one thing it writes there is the order.
 *
 * One loop, no threads. Everything that comes from a worker is checked; a worker
 * that sends nonsense is dropped, and the job doesn't notice.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/err.h"
#include "live/link/bus.h"
#include "live/metrics/hostvalues.h"
#include "live/run/options.h"

#include <uv.h>

#define HOSTD_CLIENT_MAX 1024u

struct hostd;

struct hostd_setup {
	uv_loop_t *loop;
	struct bus *bus;
	const struct run_options *options;
	const char *socket_path;      /* in a directory of mode 0700 that is ours */
	const char *trace_dir;	      /* where workers were told to put traces; absolute */
	uint32_t job_pid;	      /* set later by hostd_set_job(); 0 unknown */
	struct metrics_host *metrics; /* outlives hostd; NULL: nobody wants them */
};

/* Binds the socket and starts the timers. Returns 0 or -errno with a line in err. */
_must_check_ int hostd_open(const struct hostd_setup *setup, struct hostd **ret, struct err *err);

/* The command of the job: its descendants are not strangers. */
void hostd_set_job(struct hostd *hostd, uint32_t pid);

/* Stops timers and closes descriptors; freed once the loop has run its close callbacks. */
void hostd_close(struct hostd *hostd);
