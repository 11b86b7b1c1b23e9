/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is started beside us, and the only place of ours that sends signals. It has nothing of the state that a thread of ours
 * may be in: no signal is blocked or ignored there, and what its first three descriptors
 * are is said for each. Others are closed by their own O_CLOEXEC.
 * What has to be done in the child before the program begins needs fork().
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>

/* What may stand for a descriptor: /dev/null, or the one that we have at that number. */
enum subprocess_fd {
	SUBPROCESS_NULL = -1,
	SUBPROCESS_OURS = -2,
};

/*
 * Starts argv[0], looked for on PATH when it has no slash. argv ends with NULL; the
 * environment is ours. fds: stdin, stdout and stderr of the program, each a descriptor
 * above 2, which remains the caller's, or an enum subprocess_fd.
 * Returns 0, and the caller waits for *ret; else -errno: -ENOENT, -EACCES, -EAGAIN, ...
 */
_must_check_ int subprocess_start(const char *const *argv, const int fds[static 3], pid_t *ret);

/*
 * Looks whether a child has ended. Returns 0: it has not; 1: it has, *ret_status is its wait
 * status, and from now on its number may be somebody else's; -ECHILD: that was so before.
 */
_must_check_ int subprocess_reap(pid_t pid, int *ret_status);

/*
 * Sends a signal to one process: a child of ours that is not reaped. kill() takes numbers
 * below 1 for groups, the job's too, which a failed start leaves behind: those, and init's,
 * are refused with -EINVAL. Returns 0 or -errno.
 */
int subprocess_signal(pid_t pid, int number);

/* The same to the process group that this child leads; never to our own (-EINVAL). */
int subprocess_signal_group(pid_t leader, int number);
