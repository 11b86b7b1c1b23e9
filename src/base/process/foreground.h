/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that a process runs in its own place: signals for it come to a descriptor of the process,
 * and the command gets the signal state that the process inherited.
 */
#pragma once

#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <sys/types.h>

/* Exit statuses of a command that could not be started, as shells have them. */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

struct foreground {
	int signal_fd; /* of a signalfd, non-blocking; -1: none */
	sigset_t mask; /* inherited, as is child */
	struct sigaction child;
};

/*
 * Blocks signals[cnt] and SIGCHLD, and resets SIGCHLD: where it is ignored, children are reaped unseen.
 * Returns 0, or -errno: foreground_restore() is fine after either.
 */
_must_check_ int foreground_begin(struct foreground *ret, const int *signals, size_t cnt);

/* Gives the inherited signal state back. */
void foreground_restore(const struct foreground *foreground);

/*
 * Starts argv[0], searched on PATH, with that state and this process' descriptors. Returns 0, or -errno of
 * fork() or exec: then there is no child.
 */
_must_check_ int foreground_start(const struct foreground *foreground, char *const *argv,
				  pid_t *ret);

/* The exit status for what foreground_start() returned. */
static inline int foreground_exit_status(int error)
{
	return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
