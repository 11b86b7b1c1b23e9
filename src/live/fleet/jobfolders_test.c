/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/jobfolders.h"

#include "host/process/test_tree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <utime.h>

static char *path_of(const char *root, const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* used: seconds of its lock. */
static void make_job(const char *root, const char *name, int64_t used)
{
	const struct utimbuf times = { used, used };
	char file[300];

	(void)snprintf(file, sizeof(file), "%s/traces/deep/file", name);
	write_file(root, file, "x");
	(void)snprintf(file, sizeof(file), "%s/lock", name);
	write_file(root, file, "1 h\n");
	assert_int_equal(utime(path_of(root, file), &times), 0);
}

static bool exists(const char *root, const char *name)
{
	return access(path_of(root, name), F_OK) == 0;
}

static void the_newest_are_kept_and_those_in_use_stay(void **state)
{
	const char *root = *state;
	int fd;

	make_job(root, "old", 100);
	make_job(root, "new", 300);
	make_job(root, "newer", 400);
	make_job(root, "used", 50);
	make_job(root, "own", 500);
	write_file(root, "other/file", "no lock\n");
	fd = open(path_of(root, "used/lock"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(symlink("new", path_of(root, "old/link")), 0);
	jobfolders_prune(path_of(root, "own"), 2);
	assert_false(exists(root, "old"));
	assert_true(exists(root, "new/traces/deep/file"));
	assert_true(exists(root, "newer"));
	assert_true(exists(root, "used"));
	assert_true(exists(root, "own"));
	assert_true(exists(root, "other/file"));
	(void)close(fd);
	jobfolders_prune(path_of(root, "own"), 0);
	assert_false(exists(root, "used"));
	assert_false(exists(root, "new"));
	assert_true(exists(root, "own/lock"));
}

static void a_missing_folder_is_no_error(void **state)
{
	jobfolders_prune(path_of(*state, "nowhere/own"), 0);
	jobfolders_prune("own", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_newest_are_kept_and_those_in_use_stay),
		TEST(a_missing_folder_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
