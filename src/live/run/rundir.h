/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the sockets of running jobs are: $XDG_RUNTIME_DIR/perftracker, else
 * /tmp/perftracker-UID. The directory is private; one that somebody else could
 * have prepared is refused.
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* Makes path and its parents, unless they are there. Returns 0 or -errno with a line in err. */
_must_check_ int rundir_make(const char *path, mode_t mode, struct err *err);

/*
 * Makes path, unless it is there, for us alone. Returns 0, or -errno with a line in err: -EPERM it
 * is somebody else's, or open to others.
 */
_must_check_ int rundir_private(const char *path, struct err *err);

/* Path of this process's socket, its directory made and checked. Returns 0 or -errno. */
_must_check_ int rundir_socket(char *ret, size_t size, struct err *err);

/*
 * The newest socket somebody listens on. Returns 0, -ENOENT when no job runs,
 * or -errno, with a line in err.
 */
_must_check_ int rundir_newest(char *ret, size_t size, struct err *err);

/*
 * OUT/socket: a link by which the job that writes to out_dir is found, also from a shell
 * with another $XDG_RUNTIME_DIR. Removed when the job ends, if it is still its own. Where the
 * file system has no links there is none.
 */
void rundir_link(const char *out_dir, const char *socket_path);
void rundir_unlink(const char *out_dir, const char *socket_path);

/* Where OUT/socket leads. Returns 0, -ENOENT when no job writes there, or -errno. */
_must_check_ int rundir_of_job(const char *out_dir, char *ret, size_t size);
