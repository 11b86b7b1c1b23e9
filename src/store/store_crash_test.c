/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was committed survives: a writer killed at any moment, a disk that is full. On SQLite; also
 * on the server that PERFTRACKER_TEST_POSTGRES names (tests/store).
 */
#include "base/base.h"
#include "store/storelist.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define KILLS 20

static char folder[64], where[256];
static struct err err;

static bool on_server(void)
{
	return getenv("PERFTRACKER_TEST_POSTGRES") != NULL;
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/store_crash_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	if (on_server())
		(void)snprintf(where, sizeof(where), "%s", getenv("PERFTRACKER_TEST_POSTGRES"));
	else
		(void)snprintf(where, sizeof(where), "%s/store.db", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put_event(struct store *store, const char *job, uint64_t place)
{
	struct store_event event = { .kind = "order", .text = "text", .place = place };

	if (store_put_event(store, job, &event, &err) < 0)
		_exit(1);
}

/* Two events a transaction; the place of the second one goes to the pipe when it is committed. */
static void write_until_killed(const char *job, int pipe_fd)
{
	struct store *store = NULL;

	if (store_open(where, &store, &err) < 0)
		_exit(1);
	for (uint64_t place = 1;; place += 2) {
		uint64_t done = place + 1;

		if (store_begin(store, &err) < 0)
			_exit(1);
		put_event(store, job, place);
		put_event(store, job, done);
		if (store_commit(store, &err) < 0)
			_exit(1);
		if (write(pipe_fd, &done, sizeof(done)) != (ssize_t)sizeof(done))
			_exit(1);
	}
}

/* Kills the writer so long after its first commit. Returns the last place that it called done. */
static uint64_t write_and_kill(const char *job, unsigned after_us)
{
	uint64_t done = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_until_killed(job, fds[1]);
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &done, sizeof(done)), sizeof(done));
	(void)usleep(after_us);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status)); /* it did not end by an error */
	while (read(fds[0], &done, sizeof(done)) == (ssize_t)sizeof(done))
		;
	(void)close(fds[0]);
	return done;
}

static int count_event(void *arg, const struct store_event *event)
{
	uint64_t *cnt = arg;

	assert_int_equal(event->place, ++*cnt); /* each once, without a gap */
	return 0;
}

static void what_was_committed_survives_a_kill_at_any_moment(void **state)
{
	(void)state;
	srand((unsigned)getpid());
	for (int i = 0; i < KILLS; i++) {
		struct store *store = NULL;
		uint64_t done, cnt = 0;
		char job[32];

		(void)snprintf(job, sizeof(job), "%d-%d", getpid(), i);
		done = write_and_kill(job, (unsigned)rand() % 20000);
		assert_int_equal(store_open(where, &store, &err), 0);
		assert_int_equal(store_list_events(store, job, count_event, &cnt, &err), 0);
		assert_in_range(cnt, done, done + 2); /* a commit whose word did not get out */
		assert_int_equal(cnt % 2, 0);	      /* no half of a transaction */
		(void)store_close(store);
	}
}

/* A limit on the size of files stands for a disk that is full. */
static void a_full_disk_is_an_error_and_the_store_goes_on_later(void **state)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, small = { 1 << 18, RLIM_INFINITY };
	_cleanup_free_ char *noise = malloc(1 << 20);
	struct store *store = NULL;
	uint64_t cnt = 0;
	int ret;

	(void)state;
	if (on_server())
		skip();
	assert_non_null(noise);
	for (size_t i = 0; i < 1 << 20; i++)
		noise[i] = (char)rand();
	assert_int_equal(store_open(where, &store, &err), 0);
	put_event(store, "j", 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	small.rlim_max = all.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ret = store_put_document(store, "j", 1, "json", noise, 1 << 20, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_true(ret == -ENOSPC || ret == -EIO);
	assert_non_null(strstr(err.text, "store.db"));
	put_event(store, "j", 2);
	assert_int_equal(store_put_document(store, "j", 1, "json", noise, 1 << 20, &err), 0);
	assert_int_equal(store_list_events(store, "j", count_event, &cnt, &err), 0);
	assert_int_equal(cnt, 2);
	(void)store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_committed_survives_a_kill_at_any_moment,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_and_the_store_goes_on_later,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
