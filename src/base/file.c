/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int file_write_all(int fd, const void *data, size_t len)
{
	const char *next = data;

	while (len > 0) {
		ssize_t n = write(fd, next, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		next += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_path(const char *path, int flags, const void *data, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, mode);
	int error = fd < 0 ? -errno : file_write_all(fd, data, len);

	if (fd >= 0 && close(fd) < 0 && error == 0)
		error = -errno;
	return error;
}

/* Renaming a file over a device would replace the device. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode)
{
	struct str tmp = { 0 };
	int error;

	if (is_special(path))
		return write_path(path, 0, data, len, mode);
	str_printf(&tmp, "%s.tmp", path);
	error = str_error(&tmp);
	if (error == 0) {
		error = write_path(str_borrow(&tmp), O_NOFOLLOW, data, len, mode);
		if (error == 0 && rename(str_borrow(&tmp), path) < 0)
			error = -errno;
		if (error < 0)
			(void)unlink(str_borrow(&tmp));
	}
	str_done(&tmp);
	return error;
}
