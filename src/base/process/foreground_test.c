/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/foreground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const int signals[] = { SIGUSR1, SIGTERM };

static int exit_status_of(char *const *argv, const struct foreground *foreground)
{
	int status;
	pid_t pid;

	assert_int_equal(foreground_start(foreground, argv, &pid), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void signals_come_to_the_descriptor_until_the_state_is_restored(void **state)
{
	struct foreground foreground;
	struct signalfd_siginfo info;
	sigset_t before, blocked;

	(void)state;
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
	assert_int_equal(foreground_begin(&foreground, signals, 2), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(read(foreground.signal_fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR1);
	foreground_restore(&foreground);
	assert_int_equal(close(foreground.signal_fd), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGUSR1), sigismember(&before, SIGUSR1));
}

/* A shell says which signals it got blocked. Bit 9 of SigBlk is SIGUSR1. */
static void the_command_has_the_inherited_signals(void **state)
{
	char shell[] = "sh", option[] = "-c",
	     script[] = "b=$(sed -n 's/^SigBlk:.//p' /proc/self/status); exit $((0x$b >> 9 & 1))";
	char *const argv[] = { shell, option, script, NULL };
	struct foreground foreground;
	sigset_t set;

	(void)state;
	assert_int_equal(foreground_begin(&foreground, signals, 2), 0);
	assert_int_equal(exit_status_of(argv, &foreground), 0);
	foreground_restore(&foreground);
	assert_int_equal(close(foreground.signal_fd), 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(foreground_begin(&foreground, signals, 2), 0);
	assert_int_equal(exit_status_of(argv, &foreground), 1);
	foreground_restore(&foreground);
	assert_int_equal(close(foreground.signal_fd), 0);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
}

static void a_command_that_cannot_start_leaves_no_child(void **state)
{
	static char missing[] = "/nowhere/command", no_program[] = "/etc/passwd";
	static char *const argvs[][2] = { { missing, NULL }, { no_program, NULL } };
	static const int errors[] = { -ENOENT, -EACCES }, statuses[] = { 127, 126 };
	struct foreground foreground;
	pid_t pid = -7;

	(void)state;
	assert_int_equal(foreground_begin(&foreground, signals, 2), 0);
	for (size_t i = 0; i < ARRAY_SIZE(argvs); i++) {
		int error = foreground_start(&foreground, argvs[i], &pid);

		assert_int_equal(error, errors[i]);
		assert_int_equal(foreground_exit_status(error), statuses[i]);
		assert_int_equal(pid, -7);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
	foreground_restore(&foreground);
	assert_int_equal(close(foreground.signal_fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_come_to_the_descriptor_until_the_state_is_restored),
		cmocka_unit_test(the_command_has_the_inherited_signals),
		cmocka_unit_test(a_command_that_cannot_start_leaves_no_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
