/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/gunzip.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

/* 15 bits of window, 16: gzip wrapper only. */
#define GZIP_BITS (15 + 16)

struct gunzip {
	z_stream stream;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *gunzip = calloc(1, sizeof(*gunzip));

	if (gunzip != NULL && inflateInit2(&gunzip->stream, GZIP_BITS) != Z_OK) {
		free(gunzip);
		return NULL;
	}
	return gunzip;
}

struct gunzip *gunzip_free(struct gunzip *gunzip)
{
	if (gunzip != NULL)
		(void)inflateEnd(&gunzip->stream);
	free(gunzip);
	return NULL;
}

void gunzip_reset(struct gunzip *gunzip)
{
	(void)inflateReset(&gunzip->stream);
}

int gunzip_run(struct gunzip *gunzip, struct gunzip_step *step, const char **ret_why)
{
	z_stream *stream = &gunzip->stream;
	uInt in_len = (uInt)MIN(step->in_len, (size_t)UINT_MAX);
	uInt out_len = (uInt)MIN(step->out_len, (size_t)UINT_MAX);
	int ret;

	/* The library does not write through next_in; its type lacks the const. */
	stream->next_in = (Bytef *)(uintptr_t)step->in;
	stream->avail_in = in_len;
	stream->next_out = step->out;
	stream->avail_out = out_len;
	ret = inflate(stream, Z_NO_FLUSH);
	if (ret != Z_OK && ret != Z_STREAM_END && ret != Z_BUF_ERROR) {
		bool checksum = stream->msg != NULL && strstr(stream->msg, "check") != NULL;

		*ret_why = checksum ? "expected the gzip checksum of the text, found another"
				    : "expected valid gzip data, found damaged data";
		return -EBADMSG;
	}
	step->in += in_len - stream->avail_in;
	step->in_len -= in_len - stream->avail_in;
	step->out += out_len - stream->avail_out;
	step->out_len -= out_len - stream->avail_out;
	return ret == Z_STREAM_END;
}
