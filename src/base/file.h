/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads whole files and writes files atomically: a reader sees the old content or the new,
 * never a part.
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* Writes all of data[len] to fd, with several calls if needed. Returns 0 or -errno. */
_must_check_ int file_write_all(int fd, const void *data, size_t len);

/*
 * Writes data[len] to "PATH.tmp" and renames it to path. A path that is a device,
 * a pipe or a socket is written to, not replaced. Returns 0 or -errno; on failure
 * path is as it was and the temporary file is gone.
 */
_must_check_ int file_replace(const char *path, const void *data, size_t len, mode_t mode);

/* A file that is written piece by piece, and takes the place of path when it is complete. */
struct file_draft {
	const char *path; /* borrowed */
	char temporary[4096];
	int fd;
};

/* Opens "PATH.tmp", made with this mode. Returns 0, or -errno with a line in err. */
_must_check_ int file_begin(struct file_draft *draft, const char *path, mode_t mode,
			    struct err *err);

/*
 * Closes the draft and renames it to path. error: the result of writing it; negative: the draft is
 * removed instead. Returns 0, or -errno with a line in err; then path is as it was.
 */
_must_check_ int file_commit(struct file_draft *draft, int error, struct err *err);

/*
 * The first line of a small file, without its end; what: of an error, for instance "a password".
 * Returns 0, or -errno with a line in err: also for an empty file.
 */
_must_check_ int file_read_line(const char *path, const char *what, char *ret, size_t size,
				struct err *err);

/*
 * Reads fd from its offset to its end: a regular file of at most max_bytes. path names it in
 * err. The caller frees *ret, of *ret_len bytes. Returns 0, or -errno with a line in err.
 */
_must_check_ int file_read_whole(const char *path, int fd, size_t max_bytes, char **ret,
				 size_t *ret_len, struct err *err);
