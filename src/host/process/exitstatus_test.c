/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/exitstatus.h"

#include "host/process/test_tree.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Returns a child that runs until the pipe closes, then exits with code or kills itself. */
static pid_t start(int code, int number, int *ret_go)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		(void)close(fds[1]);
		(void)!read(fds[0], &byte, 1);
		if (number != 0)
			(void)raise(number);
		_exit(code);
	}
	assert_true(pid > 0);
	(void)close(fds[0]);
	*ret_go = fds[1];
	return pid;
}

static void await(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	assert_int_equal(poll(&fd, 1, 60000), 1);
}

/* The status before the parent waits and, where the kernel keeps it, after that. */
static void expect(int code, int number)
{
	int go, status = -1, truth, pidfd, error;
	pid_t pid = start(code, number, &go);

	pidfd = exitstatus_open((uint32_t)pid);
	assert_true(pidfd >= 0);
	assert_int_equal(exitstatus_read("", pidfd, (uint32_t)pid, &status), -ESRCH);
	assert_int_equal(status, -1);
	(void)close(go);
	await(pidfd);
	assert_int_equal(exitstatus_read("", pidfd, (uint32_t)pid, &status), 0);
	assert_int_equal(waitpid(pid, &truth, 0), pid);
	assert_int_equal(status & 0xff7f, truth & 0xff7f); /* a core was written or not */
	status = -1;
	error = exitstatus_read("", pidfd, (uint32_t)pid, &status);
	if (error == 0)
		assert_int_equal(status & 0xff7f, truth & 0xff7f);
	else
		assert_int_equal(error, -ENODATA);
	(void)close(pidfd);
}

static void the_exit_code_of_a_process_is_known(void **state)
{
	(void)state;
	expect(0, 0);
	expect(3, 0);
	expect(255, 0);
}

static void the_signal_that_ended_a_process_is_known(void **state)
{
	(void)state;
	expect(0, SIGKILL);
	expect(0, SIGTERM);
}

static void the_zombie_of_another_root_is_read_from_its_stat(void **state)
{
	const char *stat = "77 (a b) Z 1 0 0 0 0 0 0 0 0 0 5 6 0 0 0 0 0 0 99 0 0 0 0 0 "
			   "0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 768\n";
	int go, status = -1, pidfd;
	pid_t pid = start(5, 0, &go);

	write_file(*state, "proc/77/stat", stat);
	pidfd = exitstatus_open((uint32_t)pid);
	(void)close(go);
	await(pidfd);
	assert_int_equal(exitstatus_read(*state, pidfd, 77, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(pidfd);
}

static void a_process_that_is_gone_cannot_be_opened(void **state)
{
	int go;
	pid_t pid = start(0, 0, &go);

	(void)state;
	(void)close(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(exitstatus_open((uint32_t)pid), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_code_of_a_process_is_known),
		cmocka_unit_test(the_signal_that_ended_a_process_is_known),
		cmocka_unit_test_setup_teardown(the_zombie_of_another_root_is_read_from_its_stat,
						make_root, remove_root),
		cmocka_unit_test(a_process_that_is_gone_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
