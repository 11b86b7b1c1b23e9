/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_output.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER_BYTES ((size_t)1 << 20)

/* Whether a rename may replace path: nothing is there, or a regular file. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) != 0 || S_ISREG(st.st_mode);
}

static bool is_compressed(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && strcmp(path + len - 3, ".gz") == 0;
}

static ssize_t gz_write(void *gz, const char *data, size_t len)
{
	int done = gzwrite(gz, data, (unsigned int)MIN(len, BUFFER_BYTES));

	if (done <= 0 && errno == 0)
		errno = EIO;
	return done > 0 ? done : 0; /* 0: an error, for fopencookie() */
}

static int gz_close(void *gz)
{
	int ret = gzclose(gz);

	if (ret == Z_OK)
		return 0;
	if (ret != Z_ERRNO)
		errno = EIO;
	return EOF;
}

/* A stream that compresses into fd, which is its own then. Returns NULL and errno on failure. */
static FILE *open_compressed(int fd)
{
	gzFile gz = gzdopen(fd, "wb6");
	FILE *out = NULL;

	if (gz == NULL) {
		(void)close(fd);
		errno = ENOMEM;
		return NULL;
	}
	out = fopencookie(gz, "w", (cookie_io_functions_t){ .write = gz_write, .close = gz_close });
	if (out == NULL)
		(void)gzclose(gz);
	return out;
}

static FILE *open_stream(int fd, bool compressed)
{
	FILE *out;

	if (fd < 0)
		return NULL;
	if (compressed)
		return open_compressed(fd);
	out = fdopen(fd, "w");
	if (out == NULL)
		(void)close(fd);
	return out;
}

/* Writes to out and closes it, unless it is standard output. out NULL: errno says why. */
static int write_stream(FILE *out, int (*write)(void *arg, FILE *out), void *arg)
{
	int ret;

	if (out == NULL)
		return -errno;
	(void)setvbuf(out, NULL, _IOFBF, BUFFER_BYTES);
	ret = write(arg, out);
	if (out != stdout && fclose(out) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

int timeline_output(const char *path, bool compress, int (*write)(void *arg, FILE *out), void *arg)
{
	bool compressed = compress || is_compressed(path);
	struct file_draft draft;
	int ret;

	if (strcmp(path, "-") == 0 && !compress)
		return write_stream(stdout, write, arg);
	if (strcmp(path, "-") == 0)
		return write_stream(
			open_stream(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), compressed), write,
			arg);
	if (!is_replaceable(path))
		return write_stream(
			open_stream(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
				    compressed),
			write, arg);
	ret = file_begin(&draft, path, 0666, NULL);
	if (ret < 0)
		return ret;
	/* The stream has a copy of the descriptor: the draft's remains its own. */
	ret = write_stream(open_stream(fcntl(draft.fd, F_DUPFD_CLOEXEC, 0), compressed), write,
			   arg);
	return file_commit(&draft, ret, NULL);
}
