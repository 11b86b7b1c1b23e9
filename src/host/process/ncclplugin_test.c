/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and settings in a tree of folders made up by the tests. */
#include "host/process/ncclplugin.h"

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
static struct ncclplugin found;
static struct ncclplugin_places places;
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
	(void)snprintf(root, sizeof(root), "/tmp/ncclplugin-XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (mkdir(inside(folders[i]), 0700) != 0)
			return -1;
	}
	places = (struct ncclplugin_places){ .root = root, .home = "/home" };
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

static void assert_found(const char *name, const char *place, bool is_set)
{
	assert_string_equal(found.name, name);
	assert_string_equal(found.place, place);
	assert_int_equal(found.is_set, is_set);
}

static void a_system_without_a_plugin_is_recognized(_unused_ void **state)
{
	PUT("/etc/nccl.conf", "#NCCL_PROFILER_PLUGIN=x\n NCCL_PROFILER_PLUGIN=x\nNCCL_DEBUG=y\n");
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN_2=x\nNCCL_PROFILER_PLUGIN");
	PUT("/etc/ld.so.cache", "x\0/usr/lib/libnccl-profiler.so.old\0/usr/lib/libc.so.6\0");
	places.library_path = "/opt:";
	assert_false(ncclplugin_find(&places, &found));
}

static void a_setting_in_a_file_of_nccl_is_one(_unused_ void **state)
{
	PUT("/etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_PROFILER_PLUGIN=inspector\n");
	assert_true(ncclplugin_find(&places, &found));
	assert_found("inspector", "/etc/nccl.conf", true);
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN=own"); /* read first; no end of line */
	assert_true(ncclplugin_find(&places, &found));
	assert_found("own", "/home/.nccl.conf", true);
}

static void another_file_replaces_the_users(_unused_ void **state)
{
	PUT("/home/.nccl.conf", "NCCL_PROFILER_PLUGIN=own\n");
	PUT("/home/other.conf", "NCCL_DEBUG=INFO\n");
	places.conf = "/home/other.conf";
	assert_false(ncclplugin_find(&places, &found));
	PUT("/home/other.conf", "NCCL_PROFILER_PLUGIN=third\n");
	assert_true(ncclplugin_find(&places, &found));
	assert_found("third", "/home/other.conf", true);
	places.conf = ""; /* as if it were not set */
	assert_true(ncclplugin_find(&places, &found));
	assert_found("own", "/home/.nccl.conf", true);
}

static void the_plugin_that_nccl_takes_by_itself_is_one(_unused_ void **state)
{
	PUT("/opt/libnccl-profiler.so", "");
	assert_false(ncclplugin_find(&places, &found));
	places.library_path = "/nowhere::opt:/opt";
	assert_true(ncclplugin_find(&places, &found));
	assert_found("/opt/libnccl-profiler.so", "", false);
	places.library_path = NULL;
	PUT("/lib64/libnccl-profiler.so", "");
	assert_true(ncclplugin_find(&places, &found));
	assert_found("/lib64/libnccl-profiler.so", "", false);
}

static void the_loaders_cache_is_asked(_unused_ void **state)
{
	PUT("/etc/ld.so.cache", "glibc\0libnccl-profiler.so\0/opt/x/libnccl-profiler.so\0");
	assert_true(ncclplugin_find(&places, &found));
	assert_found("libnccl-profiler.so", "/etc/ld.so.cache", false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_system_without_a_plugin_is_recognized),
		TEST(a_setting_in_a_file_of_nccl_is_one),
		TEST(another_file_replaces_the_users),
		TEST(the_plugin_that_nccl_takes_by_itself_is_one),
		TEST(the_loaders_cache_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
