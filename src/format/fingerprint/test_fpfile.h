/* SPDX-License-Identifier: Apache-2.0 */
/* Writes fingerprints to files in a folder that the test group creates and removes. */
#pragma once

#include "format/fingerprint/fingerprint.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static char folder[64];

static int folder_make(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/fingerprint_test.XXXXXX");
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int folder_remove(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* The bytes of the file of a fingerprint; the caller frees. */
static unsigned char *bytes_of(const struct fingerprint *fp, size_t *ret_len)
{
	const char *path = path_of("f");
	unsigned char *data;
	struct stat st;
	struct err err;
	int fd;

	assert_int_equal(fingerprint_write(fp, path, &err), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	*ret_len = (size_t)st.st_size;
	return data;
}
