/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostd and hub in one process over the in-process bus: what `perftracker run`
 * starts beside the job. It is a separate process: if it crashes, the supervisor still waits
 * for the job and passes on its exit status.
 */
#pragma once

#include "live/run/options.h"

/* The daemon's message once it is ready; status is 0 or errno. */
struct daemon_ready {
	int32_t status;
	char text[508];	     /* the error, if status is not 0 */
	char socket[128];    /* for PERFTRACKER_SOCKET */
	char trace_dir[512]; /* for PERFTRACKER_DIR */
};

/*
 * The supervisor's messages: first the pid of the job, then each signal by which the user or a
 * scheduler asks it to end, then its exit status.
 */
struct daemon_news {
	int32_t pid;
	int32_t exit_status; /* -1: the job runs */
	int32_t signal;	     /* while it runs: it was asked to end; at its end: that ended it */
};

/*
 * Serves until the job has ended (or control_fd reads end of file) and the last
 * report is published. control_fd: a SOCK_SEQPACKET pair; daemon_ready goes out,
 * daemon_news come in. Returns the exit status of the process.
 */
int daemon_run(const struct run_options *options, int control_fd);
