/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/pagestore.h"

#include "base/clock.h"

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

static void make(const char *name, int64_t age_s)
{
	const struct timespec times[2] = { { .tv_sec = clock_wall_ns() / NSEC_PER_SEC - age_s },
					   { .tv_sec = clock_wall_ns() / NSEC_PER_SEC - age_s } };
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	(void)close(fd);
}

static bool is_there(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void what_a_killed_daemon_left_goes_and_all_else_stays(void **state)
{
	static const char *const stay[] = { "2.sock.page",     "2.sock.page-wal", "3.sock.page",
					    "3.sock.page-wal", "1.sock",	  "notes.page" };
	char command[96];

	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/pagestore_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	make("1.sock.page", 7200);
	make("1.sock.page-wal", 7200);
	make("1.sock.page-shm", 7200);
	make("1.sock", 7200);
	make("2.sock.page", 7200); /* its log was written to a moment ago */
	make("2.sock.page-wal", 1);
	make("3.sock.page", 60);
	make("3.sock.page-wal", 60);
	make("notes.page", 7200);
	pagestore_remove_stale(folder, clock_wall_ns());
	assert_false(is_there("1.sock.page"));
	assert_false(is_there("1.sock.page-wal"));
	assert_false(is_there("1.sock.page-shm"));
	for (size_t i = 0; i < ARRAY_SIZE(stay); i++) {
		if (!is_there(stay[i]))
			fail_msg("%s is gone", stay[i]);
	}
	pagestore_remove_stale("/nonexistent", 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_killed_daemon_left_goes_and_all_else_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
