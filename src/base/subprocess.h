/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program without the signal state of the calling thread: no signal is blocked or ignored
 * in it. The caller states what its first three descriptors are; all others are closed by their own
 * O_CLOEXEC. A child that has to run code before exec needs fork() instead. All signals are
 * sent here.
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>

/* Values for a descriptor: /dev/null, or the caller's descriptor of that number. */
enum subprocess_fd {
	SUBPROCESS_NULL = -1,
	SUBPROCESS_INHERIT = -2,
};

/*
 * Starts argv[0], searched on PATH if it has no slash. argv ends with NULL; the environment is the
 * caller's. fds: stdin, stdout and stderr of the program, each a descriptor above 2, which remains
 * the caller's, or an enum subprocess_fd. Returns 0, and the caller waits for *ret; else -errno:
 * -ENOENT, -EACCES, -EAGAIN, ...
 */
_must_check_ int subprocess_start(const char *const *argv, const int fds[static 3], pid_t *ret);

/* The same with this environment, which ends with NULL, instead of the caller's. */
_must_check_ int subprocess_start_in(const char *const *argv, const char *const *environment,
				     const int fds[static 3], pid_t *ret);

/*
 * Searches an executable file on PATH, as subprocess_start() does; a name with a slash is a path
 * already, and is not looked at. Returns 0, -ENOENT or -ENAMETOOLONG.
 */
_must_check_ int subprocess_find(const char *name, char *ret, size_t size);

/*
 * The same, and then in the folder of the calling program: both may be in an environment of Python
 * that is not on PATH.
 */
_must_check_ int subprocess_find_beside(const char *name, char *ret, size_t size);

/*
 * Checks whether a child has ended. Returns 0: not yet; 1: it has, *ret_status is its wait status,
 * and its pid may now be reused; -ECHILD: it was reaped before.
 */
_must_check_ int subprocess_reap(pid_t pid, int *ret_status);

/*
 * Sends a signal to one process: a child that has not been reaped. kill() interprets pids below 1
 * as groups, including the job's; a failed start leaves such a value. Those, and init's pid, are
 * refused with -EINVAL. Returns 0 or -errno.
 */
int subprocess_signal(pid_t pid, int number);

/* Sends a signal to the process group led by a child; never to the caller's own (-EINVAL). */
int subprocess_signal_group(pid_t leader, int number);
