/* SPDX-License-Identifier: Apache-2.0 */
/* A folder below /tmp in place of "/": tests of /proc and /sys read it. */
#pragma once

#include "base/base.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Writes root/path, and the folders that it lacks. */
static _unused_ void write_bytes(const char *root, const char *path, const void *data, size_t len)
{
	char full[512];
	FILE *file;

	(void)snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static _unused_ void write_file(const char *root, const char *path, const char *text)
{
	write_bytes(root, path, text, strlen(text));
}

/* Setup: an empty root is the state, of which there is one at a time. */
static _unused_ int make_root(void **state)
{
	static char root[64];

	(void)snprintf(root, sizeof(root), "/tmp/perftracker-test.XXXXXX");
	*state = mkdtemp(root);
	return *state == NULL ? -1 : 0;
}

static _unused_ int remove_entry(const char *path, const struct stat *st _unused_,
				 int type _unused_, struct FTW *ftw _unused_)
{
	return remove(path);
}

/* Teardown. */
static _unused_ int remove_root(void **state)
{
	return nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
