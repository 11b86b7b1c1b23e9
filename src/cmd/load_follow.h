/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a flight recorder that is being written. */
#pragma once

#include "cmd/cmd.h"
#include "summarize/summarize.h"

struct load_follow {
	int flight_fd, sidecar_fd; /* memory files; sidecar_fd -1: none */
	int control_fd;		   /* its end closes the window */
	const char *keep;	   /* where the flight log is saved; NULL: nowhere */
};

/*
 * Copies the worker's records until control_fd ends, then reads the sidecar, which is
 * complete by then, and makes the fingerprint. At most 512 MB of records are kept; more are
 * dropped and counted. Returns 0 or -errno with a line in err.
 */
_must_check_ int load_follow(const struct load_follow *follow,
			     const struct summarize_options *options, struct fingerprint *ret,
			     struct err *err);
