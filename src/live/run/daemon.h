/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostd and hub in one process over the in-process bus: what `perftracker run`
 * starts beside the job. It is a process of its own, so that whatever happens to
 * it, the one that waits for the job goes on and passes its exit status.
 */
#pragma once

#include "live/run/options.h"

/* What the daemon tells once it is ready; status is 0 or errno. */
struct daemon_ready {
	int32_t status;
	char text[508];	     /* why it isn't */
	char socket[128];    /* for PERFTRACKER_SOCKET */
	char trace_dir[512]; /* for PERFTRACKER_DIR */
};

/* What it is told: first the pid of the job, then how it ended. */
struct daemon_news {
	int32_t pid;
	int32_t exit_status; /* -1: runs */
};

/*
 * Serves until the job has ended (or control_fd reads end of file) and the last
 * report is out. control_fd: a SOCK_SEQPACKET pair; daemon_ready goes out,
 * daemon_news come in. Returns the exit status of the process.
 */
int daemon_run(const struct run_options *options, int control_fd);
