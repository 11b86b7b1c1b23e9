/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* Renaming a file over a device would replace the device. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_special(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : file_write_all(fd, data, len);

	if (fd >= 0 && close(fd) < 0 && error == 0)
		error = -errno;
	return error;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode)
{
	struct file_draft draft;
	int error;

	if (is_special(path))
		return write_special(path, data, len);
	error = file_begin(&draft, path, mode, NULL);
	return error < 0 ? error : file_commit(&draft, file_write_all(draft.fd, data, len), NULL);
}

int file_begin(struct file_draft *draft, const char *path, mode_t mode, struct err *err)
{
	draft->path = path;
	if ((size_t)snprintf(draft->temporary, sizeof(draft->temporary), "%s.tmp", path) >=
	    sizeof(draft->temporary))
		return err_set(err, ENAMETOOLONG, "%s: path too long", path);
	draft->fd =
		open(draft->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	return draft->fd < 0 ? err_set(err, errno, "%s: cannot create: %s", draft->temporary,
				       strerror(errno))
			     : 0;
}

int file_commit(struct file_draft *draft, int error, struct err *err)
{
	if (close(draft->fd) != 0 && error == 0)
		error = -errno;
	if (error == 0 && rename(draft->temporary, draft->path) != 0)
		error = -errno;
	if (error == 0)
		return 0;
	(void)unlink(draft->temporary);
	return err_set(err, -error, "%s: cannot write: %s", draft->path, strerror(-error));
}

static int read_all(int fd, char *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t got = read(fd, data + have, len - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		have += (size_t)got;
	}
	return 0;
}

int file_read_whole(const char *path, int fd, size_t max_bytes, char **ret, size_t *ret_len,
		    struct err *err)
{
	_cleanup_free_ char *data = NULL;
	struct stat st;
	int error;

	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max_bytes)
		return err_set(err, EINVAL, "%s: expected a regular file of at most %zu bytes",
			       path, max_bytes);
	data = malloc((size_t)st.st_size + 1);
	if (data == NULL)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	error = read_all(fd, data, (size_t)st.st_size);
	if (error < 0)
		return err_set(err, -error, "%s: cannot read: %s", path, strerror(-error));
	*ret = take_ptr(data);
	*ret_len = (size_t)st.st_size;
	return 0;
}

int file_read_line(const char *path, const char *what, char *ret, size_t size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, ret, size - 1);
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (len < 0)
		return err_set(err, error, "%s: cannot read %s: %s", path, what, strerror(error));
	ret[len] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return ret[0] != '\0'
		       ? 0
		       : err_set(err, EINVAL, "%s: expected %s, found an empty file", path, what);
}
