/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and settings in a tree of folders made up by the tests. */
#include "serve/attach_nccl.h"

#include <fcntl.h>
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

static char root[64];
static char found[PATH_MAX];
static struct attach_nccl_places places;
static const char *const folders[] = { "/etc", "/home", "/lib64", "/opt" };
static const char *const files[] = {
	"/etc/nccl.conf",   "/etc/ld.so.cache",		  "/home/.nccl.conf",
	"/home/other.conf", "/lib64/libnccl-profiler.so", "/opt/libnccl-profiler.so"
};

static char *inside(const char *path)
{
	static char ret[4][128];
	static unsigned turn;
	char *text = ret[turn++ % 4];

	(void)snprintf(text, sizeof(ret[0]), "%s%s", root, path);
	return text;
}

static void put(const char *path, const char *text, size_t len)
{
	int fd = open(inside(path), O_WRONLY | O_CREAT | O_APPEND, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(close(fd), 0);
}

#define PUT(path, text) put(path, text, sizeof(text) - 1)

static int setup(_unused_ void **state)
{
	static char home[128];

	(void)snprintf(root, sizeof(root), "/tmp/attach-nccl-XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (mkdir(inside(folders[i]), 0700) != 0)
			return -1;
	}
	(void)snprintf(home, sizeof(home), "%s/home", root);
	places = (struct attach_nccl_places){ .root = root, .home = home };
	return 0;
}

static int teardown(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)unlink(inside(files[i]));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		(void)rmdir(inside(folders[i]));
	return rmdir(root);
}

static void there_is_none(_unused_ void **state)
{
	PUT("/etc/nccl.conf", "#NCCL_PROFILER_PLUGIN=x\n NCCL_PROFILER_PLUGIN=x\nNCCL_DEBUG=y\n");
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN_2=x\nNCCL_PROFILER_PLUGIN");
	PUT("/etc/ld.so.cache", "x\0/usr/lib/libnccl-profiler.so.old\0/usr/lib/libc.so.6\0");
	places.library_path = inside("/opt:");
	assert_false(attach_nccl_find(&places, found));
}

static void a_setting_in_a_file_of_nccl_is_one(_unused_ void **state)
{
	PUT("/etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_PROFILER_PLUGIN=inspector\n");
	assert_true(attach_nccl_find(&places, found));
	assert_memory_equal(found, "inspector (", 11);
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN=own"); /* read first; no end of line */
	assert_true(attach_nccl_find(&places, found));
	assert_memory_equal(found, "own (", 5);
}

static void another_file_stands_in_place_of_the_users(_unused_ void **state)
{
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN=own\n");
	PUT("/home/other.conf", "NCCL_DEBUG=INFO\n");
	places.conf = inside("/home/other.conf");
	assert_false(attach_nccl_find(&places, found));
	PUT("/home/other.conf", "NCCL_PROFILER_PLUGIN=third\n");
	assert_true(attach_nccl_find(&places, found));
	assert_memory_equal(found, "third (", 7);
	places.conf = ""; /* as if it were not set */
	assert_true(attach_nccl_find(&places, found));
	assert_memory_equal(found, "own (", 5);
}

static void the_plugin_that_nccl_takes_by_itself_is_one(_unused_ void **state)
{
	char path[256];

	PUT("/opt/libnccl-profiler.so", "");
	assert_false(attach_nccl_find(&places, found));
	(void)snprintf(path, sizeof(path), "/nowhere:%s/opt", root);
	places.library_path = path;
	assert_true(attach_nccl_find(&places, found));
	assert_string_equal(found, inside("/opt/libnccl-profiler.so"));
	places.library_path = NULL;
	PUT("/lib64/libnccl-profiler.so", "");
	assert_true(attach_nccl_find(&places, found));
}

static void the_loaders_cache_is_asked(_unused_ void **state)
{
	PUT("/etc/ld.so.cache", "glibc\0libnccl-profiler.so\0/opt/x/libnccl-profiler.so\0");
	assert_true(attach_nccl_find(&places, found));
	assert_memory_equal(found, "libnccl-profiler.so (", 21);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(there_is_none),
		TEST(a_setting_in_a_file_of_nccl_is_one),
		TEST(another_file_stands_in_place_of_the_users),
		TEST(the_plugin_that_nccl_takes_by_itself_is_one),
		TEST(the_loaders_cache_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
