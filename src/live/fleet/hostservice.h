/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `perftracker hostd`: one per host, for the jobs of all its users. A training process that asks on
 * its Unix socket (attachment.h) gets the socket of its job's daemon, a child that hostd starts for
 * the job's first worker, as the user of that worker, and that ends with the last one. hostd itself
 * never looks into a training process; it has the host's connection to the site's bus, of which each
 * daemon gets its own job's subjects (relay.h), and says there every few seconds which jobs it has.
 * If hostd ends, training and the daemons go on; the host's jobs are watched alone then.
 * Source: ARCHITECTURE.md, "A fleet".
 */
#pragma once

#include "base/err.h"
#include "live/site/site.h"

struct hostservice_setup {
	struct site *site;
	const char *program; /* this executable */
};

/* Serves until SIGTERM or SIGINT. Returns the exit status of the process. */
int hostservice_run(const struct hostservice_setup *setup);
