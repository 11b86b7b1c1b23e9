/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command of an experiment: started unchanged, with its output, status and signals its own.
 * Meanwhile the caller is asked again and again whether the experiment is complete.
 */
#pragma once

#include "base/base.h"

#include <signal.h>
#include <sys/types.h>

struct roofjob {
	/* Called five times a second while the command runs, until it returns true. */
	bool (*look)(void *arg);
	void *arg;
	bool stop; /* then ask the command to end, by SIGTERM */
};

/*
 * Runs argv, searched on PATH, in this process's environment. Returns its exit status, 128 and the
 * number of the signal that ended it, 127 or 126 if it could not be started (an error line says
 * why), or 0 if it ended because it was asked to.
 */
int roofjob_run(const struct roofjob *job, char *const *argv);
