/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Each test works in a new folder. */
static int setup(void **state)
{
	static char folder[64];

	(void)snprintf(folder, sizeof(folder), "/tmp/pt-outdir-XXXXXX");
	*state = folder;
	return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", (const char *)*state);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int count_entries(const char *path)
{
	int cnt = -2; /* "." and ".." */
	DIR *dir = opendir(path);

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		cnt++;
	(void)closedir(dir);
	return cnt;
}

static void without_a_name_each_run_has_a_new_folder_and_latest_links_to_it(void **state)
{
	struct outdir first, second;
	char target[128] = "";

	(void)state;
	assert_int_equal(outdir_open(&first, NULL, "train", NULL), 0);
	outdir_started(&first);
	assert_int_equal(outdir_open(&second, NULL, "train", NULL), 0);
	outdir_started(&second);
	assert_string_not_equal(first.path, second.path);
	assert_non_null(strstr(first.path, "/perftracker-out/20"));
	assert_non_null(strstr(first.path, "-train"));
	assert_true(readlink("perftracker-out/latest", target, sizeof(target) - 1) > 0);
	assert_string_equal(target, strrchr(second.path, '/') + 1);
	(void)close(first.lock_fd);
	(void)close(second.lock_fd);
}

static void a_folder_in_use_is_refused_and_the_message_names_the_process(void **state)
{
	struct outdir first, second;
	struct err err = { "" };
	char pid[32];

	(void)state;
	assert_int_equal(outdir_open(&first, "a/out", "x", &err), 0);
	assert_int_equal(outdir_open(&second, "a/out", "x", &err), -EBUSY);
	(void)snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, "/a/out is in use"));
	assert_string_equal(second.path, "");
	(void)close(first.lock_fd);
	assert_int_equal(outdir_open(&second, "a/out", "x", &err), 0);
	(void)close(second.lock_fd);
}

/* As on a file system that two hosts share. */
static void a_run_on_another_host_gets_a_folder_inside(void **state)
{
	struct outdir first, second, third;
	struct err err = { "" };
	char host[65] = "", end[80];

	(void)state;
	(void)gethostname(host, sizeof(host) - 1);
	assert_int_equal(outdir_open(&first, "out", "x", &err), 0);
	write_file("out/lock", "17 another-host\n");
	assert_int_equal(outdir_open(&second, "out", "x", &err), 0);
	(void)snprintf(end, sizeof(end), "/out/%s", host);
	assert_string_equal(strstr(second.path, "/out/"), end);
	assert_int_equal(outdir_open(&third, "out", "x", &err), -EBUSY);
	(void)close(first.lock_fd);
	(void)close(second.lock_fd);
}

static void results_of_an_earlier_run_are_moved_and_other_files_stay(void **state)
{
	struct outdir outdir;

	(void)state;
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(mkdir("out/fingerprints", 0755), 0);
	write_file("out/report.json", "old");
	write_file("out/report-1.html", "old");
	write_file("out/my.log", "mine");
	assert_int_equal(outdir_open(&outdir, "out", "x", NULL), 0);
	assert_false(exists("out/report.json"));
	assert_false(exists("out/fingerprints"));
	assert_true(exists("out/my.log"));
	assert_int_equal(count_entries(outdir.earlier), 3);
	(void)close(outdir.lock_fd);
}

static void a_job_that_did_not_start_leaves_everything_as_it_was(void **state)
{
	struct outdir outdir;
	char traces[4200];

	(void)state;
	assert_int_equal(outdir_open(&outdir, NULL, "x", NULL), 0);
	(void)snprintf(traces, sizeof(traces), "%s/traces", outdir.path);
	assert_int_equal(mkdir(traces, 0700), 0);
	outdir_undo(&outdir);
	assert_false(exists("perftracker-out"));
	(void)close(outdir.lock_fd);

	assert_int_equal(mkdir("out", 0755), 0);
	write_file("out/report.json", "old");
	assert_int_equal(outdir_open(&outdir, "out", "x", NULL), 0);
	outdir_undo(&outdir);
	assert_int_equal(count_entries("out"), 1);
	assert_true(exists("out/report.json"));
	(void)close(outdir.lock_fd);
}

static void a_file_in_the_way_is_an_error_and_is_left_alone(void **state)
{
	struct outdir outdir;
	struct err err = { "" };

	(void)state;
	write_file("out", "a file");
	assert_int_equal(outdir_open(&outdir, "out", "x", &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "expected a directory"));
	outdir_undo(&outdir);
	assert_true(exists("out"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			without_a_name_each_run_has_a_new_folder_and_latest_links_to_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_folder_in_use_is_refused_and_the_message_names_the_process, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_run_on_another_host_gets_a_folder_inside, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			results_of_an_earlier_run_are_moved_and_other_files_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_job_that_did_not_start_leaves_everything_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_in_the_way_is_an_error_and_is_left_alone,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
