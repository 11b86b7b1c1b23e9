/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const int none[3] = { SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_NULL };

/* Returns the wait status. */
static int run(const char *const *argv, const int fds[static 3])
{
	int status;
	pid_t pid;

	assert_int_equal(subprocess_start(argv, fds, &pid), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int run_script(const char *script, const char *argument, const int fds[static 3])
{
	return run((const char *const[]){ "sh", "-c", script, "sh", argument, NULL }, fds);
}

static void assert_read(int fd, const char *expected)
{
	char text[64] = "";

	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(expected));
	assert_string_equal(text, expected);
}

static void a_program_gets_its_arguments_and_its_descriptors(_unused_ void **state)
{
	int in[2], out[2], err[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "asked", 5), 5);
	assert_int_equal(close(in[1]), 0);
	assert_int_equal(run_script("echo \"$1\" >&2; cat", "an argument",
				    (const int[3]){ in[0], out[1], err[1] }),
			 0);
	assert_read(out[0], "asked");
	assert_read(err[0], "an argument\n");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(out[i]), 0);
		assert_int_equal(close(err[i]), 0);
	}
	assert_int_equal(close(in[0]), 0);
}

static void null_is_the_end_of_input_and_takes_all_output(_unused_ void **state)
{
	assert_int_equal(run_script("cat && echo text && echo text >&2 &&"
				    "test \"$(readlink /proc/self/fd/2)\" = /dev/null",
				    "", none),
			 0);
}

static void an_inherited_descriptor_is_that_of_the_caller(_unused_ void **state)
{
	char name[PATH_MAX] = "";

	assert_true(readlink("/proc/self/fd/2", name, sizeof(name) - 1) > 0);
	assert_int_equal(
		run_script("test \"$(readlink /proc/self/fd/2)\" = \"$1\"", name,
			   (const int[3]){ SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_INHERIT }),
		0);
}

static void no_signal_is_blocked_or_ignored_in_the_program(_unused_ void **state)
{
	sigset_t term, old;
	int status;

	assert_int_equal(sigemptyset(&term), 0);
	assert_int_equal(sigaddset(&term, SIGTERM), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, &old), 0);
	assert_ptr_not_equal(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	status = run_script("kill -TERM $$", "", none);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status = run_script("kill -PIPE $$", "", none);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_IGN);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

static void a_program_that_cannot_be_started_returns_an_error(_unused_ void **state)
{
	pid_t pid = -7;

	assert_int_equal(subprocess_start((const char *const[]){ "/nowhere/x", NULL }, none, &pid),
			 -ENOENT);
	assert_int_equal(subprocess_start((const char *const[]){ "/dev/null", NULL }, none, &pid),
			 -EACCES);
	assert_int_equal(pid, -7);
}

/* Runs work in its own process group, so that a stray signal does not kill the test. */
static void in_a_group_of_its_own(void (*work)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setpgid(0, 0);
		work();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void signal_invalid_pids(void)
{
	static const pid_t pids[] = { 0, -1, 1, -77 };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		if (pids[i] != -1 && subprocess_signal(pids[i], SIGKILL) != -EINVAL)
			_exit(1);
		/* Signal 0 sends nothing, but kill() would report success. */
		if (subprocess_signal(pids[i], 0) != -EINVAL ||
		    subprocess_signal_group(pids[i], 0) != -EINVAL)
			_exit(2);
	}
	if (subprocess_signal_group(getpgrp(), SIGKILL) != -EINVAL)
		_exit(3);
}

static void a_pid_of_a_group_is_not_signaled(_unused_ void **state)
{
	in_a_group_of_its_own(signal_invalid_pids);
}

static void a_child_is_signaled_until_it_is_reaped(_unused_ void **state)
{
	const char *const argv[] = { "sleep", "1000", NULL };
	int status = -7, got;
	pid_t pid;

	assert_int_equal(subprocess_start(argv, none, &pid), 0);
	assert_int_equal(subprocess_reap(pid, &status), 0);
	assert_int_equal(subprocess_signal(pid, SIGTERM), 0);
	while ((got = subprocess_reap(pid, &status)) == 0)
		(void)sched_yield();
	assert_int_equal(got, 1);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(subprocess_reap(pid, &status), -ECHILD);
	assert_int_equal(subprocess_reap(0, &status), -ECHILD);
}

static void a_program_is_found_on_path_and_nothing_else(_unused_ void **state)
{
	char path[64] = "as it was";

	assert_int_equal(subprocess_find("no-such-program-here", path, sizeof(path)), -ENOENT);
	assert_int_equal(subprocess_find("sh", path, sizeof(path)), 0);
	assert_int_equal(access(path, X_OK), 0);
	assert_int_equal(subprocess_find("./any/path", path, sizeof(path)), 0);
	assert_string_equal(path, "./any/path");
	assert_int_equal(subprocess_find("./any/path", path, 4), -ENAMETOOLONG);
}

static void a_program_is_found_beside_the_caller_too(_unused_ void **state)
{
	char path[PATH_MAX] = "", own[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	assert_true(len > 0);
	own[len] = '\0';
	assert_int_equal(subprocess_find_beside("no-such-program-here", path, sizeof(path)),
			 -ENOENT);
	assert_int_equal(subprocess_find_beside("sh", path, sizeof(path)), 0);
	assert_non_null(strstr(path, "/sh"));
	assert_int_equal(subprocess_find_beside(strrchr(own, '/') + 1, path, sizeof(path)), 0);
	assert_string_equal(path, own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_found_on_path_and_nothing_else),
		cmocka_unit_test(a_program_is_found_beside_the_caller_too),
		cmocka_unit_test(a_program_gets_its_arguments_and_its_descriptors),
		cmocka_unit_test(null_is_the_end_of_input_and_takes_all_output),
		cmocka_unit_test(an_inherited_descriptor_is_that_of_the_caller),
		cmocka_unit_test(no_signal_is_blocked_or_ignored_in_the_program),
		cmocka_unit_test(a_program_that_cannot_be_started_returns_an_error),
		cmocka_unit_test(a_pid_of_a_group_is_not_signaled),
		cmocka_unit_test(a_child_is_signaled_until_it_is_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
