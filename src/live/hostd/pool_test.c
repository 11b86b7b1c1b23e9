/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/pool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char *const missing[] = { "/nowhere/perftracker", NULL };
static const char *const endless[] = { "/bin/sleep", "1000", NULL };

static struct {
	uv_loop_t loop;
	struct pool *pool;
	int fds[2];
	unsigned kills, wrong_kills; /* wrong: of a group, or of a process already reaped */
	unsigned done;
	int status;
	char text[512];
} fixture;

/* Replaces libc's kill(), for libuv too. A signal to the whole group is only counted. */
int kill(pid_t pid, int number)
{
	siginfo_t info;

	fixture.kills++;
	if (pid <= 1 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
		fixture.wrong_kills++;
		return 0;
	}
	return (int)syscall(SYS_kill, pid, number);
}

static void done(void *arg, uint64_t id, int status, const char *text)
{
	assert_ptr_equal(arg, &fixture);
	assert_int_equal(id, 7);
	fixture.done++;
	fixture.status = status;
	(void)snprintf(fixture.text, sizeof(fixture.text), "%s", text);
}

static int open_pool(void **state)
{
	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	assert_int_equal(uv_loop_init(&fixture.loop), 0);
	assert_int_equal(pipe2(fixture.fds, O_CLOEXEC), 0);
	fixture.pool = pool_new(&fixture.loop, 1, done, &fixture);
	return fixture.pool == NULL ? -1 : 0;
}

static int close_pool(void **state)
{
	(void)state;
	(void)close(fixture.fds[0]);
	(void)close(fixture.fds[1]); /* the grandchild that reads the other end exits */
	pool_close(fixture.pool);
	(void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
	return uv_loop_close(&fixture.loop);
}

static void follow(const char *const *argv)
{
	assert_int_equal(pool_follow(fixture.pool, 7, argv, fixture.fds), 0);
}

static void run_until_done(void)
{
	while (fixture.done == 0)
		(void)uv_run(&fixture.loop, UV_RUN_ONCE);
}

static void a_command_that_did_not_start_is_not_killed(void **state)
{
	(void)state;
	follow(missing);
	pool_kill(fixture.pool, 7);
	assert_int_equal(fixture.kills, 0);
	run_until_done();
	assert_int_equal(fixture.status, UV_ENOENT);
	assert_string_equal(fixture.text,
			    "cannot start /nowhere/perftracker: no such file or directory");
}

static void closing_does_not_kill_a_command_that_did_not_start(void **state)
{
	(void)state;
	follow(missing);
	pool_close(fixture.pool);
	assert_int_equal(fixture.kills, 0);
	(void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
	assert_int_equal(fixture.done, 0);
	fixture.pool = NULL;
}

static void a_running_command_is_killed_once_and_reported(void **state)
{
	(void)state;
	follow(endless);
	pool_kill(fixture.pool, 7);
	run_until_done();
	assert_int_equal(fixture.kills, 1);
	assert_int_equal(fixture.wrong_kills, 0);
	assert_int_equal(fixture.status, 128 + SIGKILL);
}

/* A grandchild holds stderr open, so the task outlives its process. */
static void an_ended_command_is_not_killed_while_its_stderr_is_open(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c",
					    "exec 4>&-; read x <&3 & exec echo dead", NULL };
	siginfo_t info;

	(void)state;
	follow(argv);
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		(void)uv_run(&fixture.loop, UV_RUN_ONCE); /* until libuv has reaped it */
	pool_kill(fixture.pool, 7);
	assert_int_equal(fixture.wrong_kills, 0);
	assert_int_equal(fixture.done, 0);
	(void)close(fixture.fds[1]);
	fixture.fds[1] = -1;
	run_until_done();
	assert_int_equal(fixture.status, 0);
}

static void a_command_that_does_not_start_is_reported(void **state)
{
	(void)state;
	assert_int_equal(pool_add(fixture.pool, 7, missing), 0);
	run_until_done();
	assert_int_equal(fixture.status, UV_ENOENT);
	assert_int_equal(fixture.kills, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_command_that_did_not_start_is_not_killed,
						open_pool, close_pool),
		cmocka_unit_test_setup_teardown(closing_does_not_kill_a_command_that_did_not_start,
						open_pool, close_pool),
		cmocka_unit_test_setup_teardown(a_running_command_is_killed_once_and_reported,
						open_pool, close_pool),
		cmocka_unit_test_setup_teardown(
			an_ended_command_is_not_killed_while_its_stderr_is_open, open_pool,
			close_pool),
		cmocka_unit_test_setup_teardown(a_command_that_does_not_start_is_reported,
						open_pool, close_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
