/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a trace, decompressed: a regular file, plain or gzip (recognized by
 * its first two bytes, not its name), or a piece of memory holding the same.
 * Several gzip members in a row are one text, and their checksums are verified.
 * Memory is constant, however much a file expands.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

struct input;

/*
 * Opens path. -EISDIR or -EINVAL for anything that is not a regular file (a
 * FIFO would block), -ENOMEM, or the errno of open(). err says which.
 */
_must_check_ int input_open(const char *path, struct input **ret, struct err *err);

/* Reads data[len], borrowed until input_free(). Returns 0 or -ENOMEM. */
_must_check_ int input_open_memory(const void *data, size_t len, struct input **ret);

/* Returns NULL. */
struct input *input_free(struct input *input);

/*
 * Fills buf[cap], less only at the end of the text. Returns the bytes written,
 * 0 at the end, -errno on failure: *ret_why then says "expected ..., found ..."
 * (static text).
 */
_must_check_ ssize_t input_read(struct input *input, void *buf, size_t cap, const char **ret_why);
