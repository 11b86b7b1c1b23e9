/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/input.h"

#include "read/common/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Compressed bytes read at once; plain text goes straight to the caller's buffer. */
#define CHUNK_BYTES (128u * 1024u)

struct input {
	int fd;		     /* -1 for memory */
	const uint8_t *data; /* memory: what is left */
	size_t data_len;
	struct gunzip *gunzip; /* NULL: plain text */
	uint8_t *chunk;	       /* compressed bytes, or the first bytes of a plain file */
	size_t chunk_pos, chunk_len;
	bool member_open; /* inside a gzip member */
	bool any_member;  /* at least one member was read to its end */
	bool full;	  /* the last output was filled: the decompressor may hold more */
	ssize_t failed;	  /* 0, or the error that follows the bytes already given out */
	const char *failed_why;
};

static ssize_t fd_fill(int fd, uint8_t *buf, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		ssize_t n = read(fd, buf + done, cap - done);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Bytes of the file or memory, not decompressed. */
static ssize_t raw_fill(struct input *input, uint8_t *buf, size_t cap)
{
	size_t n;

	if (input->fd >= 0)
		return fd_fill(input->fd, buf, cap);
	n = MIN(cap, input->data_len);
	if (n > 0)
		memcpy(buf, input->data, n);
	input->data += n;
	input->data_len -= n;
	return (ssize_t)n;
}

static int chunk_refill(struct input *input)
{
	ssize_t n = raw_fill(input, input->chunk, CHUNK_BYTES);

	if (n < 0)
		return (int)n;
	input->chunk_pos = 0;
	input->chunk_len = (size_t)n;
	return 0;
}

static bool is_gzip(const uint8_t *bytes, size_t len)
{
	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* Reads the first chunk and decides between plain text and gzip. */
static int input_start(struct input *input)
{
	int ret;

	input->chunk = malloc(CHUNK_BYTES);
	if (input->chunk == NULL)
		return -ENOMEM;
	ret = chunk_refill(input);
	if (ret < 0 || !is_gzip(input->chunk, input->chunk_len))
		return ret;
	input->gunzip = gunzip_new();
	return input->gunzip != NULL ? 0 : -ENOMEM;
}

static int input_make(struct input source, struct input **ret)
{
	struct input *input = malloc(sizeof(*input));
	int r;

	if (input == NULL) {
		if (source.fd >= 0)
			(void)close(source.fd);
		return -ENOMEM;
	}
	*input = source;
	r = input_start(input);
	if (r < 0) {
		input_free(input);
		return r;
	}
	*ret = input;
	return 0;
}

static int check_regular(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, EISDIR, "%s: expected a file, found a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			       "%s: expected a regular file, found a device, pipe or socket", path);
	return 0;
}

int input_open(const char *path, struct input **ret, struct err *err)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	r = check_regular(fd, path, err);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = input_make((struct input){ .fd = fd }, ret);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}

int input_open_memory(const void *data, size_t len, struct input **ret)
{
	return input_make((struct input){ .fd = -1, .data = data, .data_len = len }, ret);
}

struct input *input_free(struct input *input)
{
	if (input == NULL)
		return NULL;
	if (input->fd >= 0)
		(void)close(input->fd);
	gunzip_free(input->gunzip);
	free(input->chunk);
	free(input);
	return NULL;
}

static ssize_t plain_read(struct input *input, uint8_t *buf, size_t cap, const char **ret_why)
{
	size_t left = MIN(cap, input->chunk_len - input->chunk_pos);
	ssize_t n;

	if (left > 0)
		memcpy(buf, input->chunk + input->chunk_pos, left);
	input->chunk_pos += left;
	n = raw_fill(input, buf + left, cap - left);
	if (n < 0) {
		*ret_why = "expected readable data, found a read error";
		return n;
	}
	return (ssize_t)left + n;
}

/*
 * Between members: 1 when another one begins, 0 at the end of the file. Zero
 * bytes may follow the last member (tape padding); anything else is an error.
 */
static int next_member(struct input *input, const char **ret_why)
{
	for (;;) {
		if (input->chunk_pos == input->chunk_len) {
			int ret = chunk_refill(input);

			if (ret < 0)
				return ret;
			if (input->chunk_len == 0)
				return 0;
		}
		if (input->chunk[input->chunk_pos] != 0 || !input->any_member)
			break;
		input->chunk_pos++;
	}
	if (input->any_member && input->chunk[input->chunk_pos] != 0x1f) {
		*ret_why = "expected the end of the gzip data, found other bytes after it";
		return -EBADMSG;
	}
	gunzip_reset(input->gunzip);
	input->member_open = true;
	input->full = false;
	return 1;
}

/* One call of the decompressor. Returns the bytes written; 0 means call again. */
static ssize_t member_read(struct input *input, uint8_t *buf, size_t cap, const char **ret_why)
{
	struct gunzip_step step = { .out = buf, .out_len = cap };
	int ret;

	if (input->chunk_pos == input->chunk_len) {
		ret = chunk_refill(input);
		if (ret < 0)
			return ret;
	}
	/* No input is left and no output was held back. */
	if (input->chunk_len == 0 && !input->full) {
		*ret_why = "expected more gzip data, found the end of the file";
		return -EBADMSG;
	}
	step.in = input->chunk + input->chunk_pos;
	step.in_len = input->chunk_len - input->chunk_pos;
	ret = gunzip_run(input->gunzip, &step, ret_why);
	if (ret < 0)
		return ret;
	input->chunk_pos = input->chunk_len - step.in_len;
	input->full = step.out_len == 0;
	if (ret == 1) {
		input->member_open = false;
		input->any_member = true;
	}
	return (ssize_t)(cap - step.out_len);
}

/* Some text: its length, 0 at the end, -errno. */
static ssize_t gzip_step(struct input *input, uint8_t *buf, size_t cap, const char **ret_why)
{
	for (;;) {
		ssize_t n;

		if (!input->member_open) {
			int ret = next_member(input, ret_why);

			if (ret <= 0)
				return ret;
		}
		n = member_read(input, buf, cap, ret_why);
		if (n != 0)
			return n;
	}
}

static ssize_t gzip_read(struct input *input, uint8_t *buf, size_t cap, const char **ret_why)
{
	size_t done = 0;

	while (done < cap && input->failed == 0) {
		ssize_t n = gzip_step(input, buf + done, cap - done, ret_why);

		if (n == 0)
			break;
		if (n < 0) {
			input->failed = n;
			input->failed_why = *ret_why;
			break;
		}
		done += (size_t)n;
	}
	/* Text before the damage is returned first, the error by the next call. */
	if (done > 0 || input->failed == 0)
		return (ssize_t)done;
	*ret_why = input->failed_why;
	return input->failed;
}

ssize_t input_read(struct input *input, void *buf, size_t cap, const char **ret_why)
{
	*ret_why = "expected readable data, found a read error";
	return input->gunzip != NULL ? gzip_read(input, buf, cap, ret_why)
				     : plain_read(input, buf, cap, ret_why);
}
