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

/* Path of this process's socket, its directory made and checked. Returns 0 or -errno. */
_must_check_ int rundir_socket(char *ret, size_t size, struct err *err);

/*
 * The newest socket somebody listens on. Returns 0, -ENOENT when no job runs,
 * or -errno, with a line in err.
 */
_must_check_ int rundir_newest(char *ret, size_t size, struct err *err);
