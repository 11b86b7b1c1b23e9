/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the sockets of running jobs are: $XDG_RUNTIME_DIR/perftracker, else
 * /tmp/perftracker-UID. The directory is private; one that another user owns or
 * may write to is refused.
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

#define RUNDIR_HOSTD_SOCKET "/run/perftracker/hostd.sock" /* unless PERFTRACKER_HOSTD names it */

/* Makes path and its parents unless they exist. Returns 0 or -errno with a line in err. */
_must_check_ int rundir_make(const char *path, mode_t mode, struct err *err);

/*
 * Makes path, unless it exists, with access for this user only. Returns 0, or -errno with a
 * line in err; -EPERM: it belongs to another user, or others have access.
 */
_must_check_ int rundir_private(const char *path, struct err *err);

/* Path of this process's socket, its directory made and checked. Returns 0 or -errno. */
_must_check_ int rundir_socket(char *ret, size_t size, struct err *err);

/* Whether a daemon listens at the socket. */
bool rundir_is_served(const char *path);

/*
 * Calls visit(arg, path) for each socket with a listening daemon, in no order: of this user's jobs,
 * also those that hostd of a fleet has started, or of a folder. Returns 0, or the first negative
 * result of visit.
 */
_must_check_ int rundir_visit(int (*visit)(void *arg, const char *path), void *arg);
_must_check_ int rundir_visit_folder(const char *base, int (*visit)(void *arg, const char *path),
				     void *arg);

/*
 * The newest socket with a listening daemon. Returns 0, -ENOENT when no job runs,
 * or -errno, with a line in err.
 */
_must_check_ int rundir_newest(char *ret, size_t size, struct err *err);

/*
 * Makes OUT/socket: a link to the socket of the job that writes to out_dir, for shells with
 * another $XDG_RUNTIME_DIR. It is removed when the job ends, if it still links to its socket.
 * Does nothing on a file system without links.
 */
void rundir_link(const char *out_dir, const char *socket_path);
void rundir_unlink(const char *out_dir, const char *socket_path);

/* Reads the target of OUT/socket. Returns 0, -ENOENT when no job writes there, or -errno. */
_must_check_ int rundir_of_job(const char *out_dir, char *ret, size_t size);
