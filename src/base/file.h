/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files atomically: a reader sees the old content or the new, never a part. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

/* Writes all of data[len] to fd, with several calls if needed. Returns 0 or -errno. */
_must_check_ int file_write_all(int fd, const void *data, size_t len);

/*
 * Writes data[len] to "PATH.tmp" and renames it to path. A path that is a device,
 * a pipe or a socket is written to, not replaced. Returns 0 or -errno; on failure
 * path is as it was and the temporary file is gone.
 */
_must_check_ int file_replace(const char *path, const void *data, size_t len, mode_t mode);
