/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon of one host: drains the marks of its workers, watches each with a detector,
 * writes orders into their blocks, samples the host while a window is open, and has each
 * finished trace summarized into a fingerprint. It runs no code in a worker; it only writes
 * orders into the worker's block.
 *
 * One loop, no threads. All data from a worker is checked; a worker that sends invalid data is
 * disconnected, without effect on the job.
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
	const char *socket_path;      /* in a directory of this user, mode 0700 */
	const char *trace_dir;	      /* PERFTRACKER_DIR of the workers; absolute */
	uint32_t job_pid;	      /* set later by hostd_set_job(); 0 unknown */
	struct metrics_host *metrics; /* outlives hostd; NULL: /metrics is off */
	/* Of a fleet's member: a stream to the bus has come, borrowed. NULL: none is expected. */
	void (*take_relay)(void *arg, int fd);
	void *relay_arg;
};

/* Binds the socket and starts the timers. Returns 0 or -errno with a line in err. */
_must_check_ int hostd_open(const struct hostd_setup *setup, struct hostd **ret, struct err *err);

/* The pid of the job's command: its descendants are not contenders. */
void hostd_set_job(struct hostd *hostd, uint32_t pid);

/* Connected workers, and processes of workers that have left and still run. */
size_t hostd_workers(const struct hostd *hostd);

/* No trace is being summarized. */
bool hostd_is_idle(const struct hostd *hostd);

/* Stops timers and closes descriptors; freed once the loop has run its close callbacks. */
void hostd_close(struct hostd *hostd);
