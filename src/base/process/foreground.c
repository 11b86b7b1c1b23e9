/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/foreground.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

int foreground_begin(struct foreground *ret, const int *signals, size_t cnt)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t mask;

	(void)sigemptyset(&mask);
	for (size_t i = 0; i < cnt; i++)
		(void)sigaddset(&mask, signals[i]);
	(void)sigaddset(&mask, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &mask, &ret->mask);
	(void)sigaction(SIGCHLD, &usual, &ret->child);
	ret->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return ret->signal_fd < 0 ? -errno : 0;
}

void foreground_restore(const struct foreground *foreground)
{
	(void)sigaction(SIGCHLD, &foreground->child, NULL);
	(void)sigprocmask(SIG_SETMASK, &foreground->mask, NULL);
}

/* In the child: returns only if exec fails; writes errno to the pipe. */
static void be_command(const struct foreground *foreground, char *const *argv, int error_fd)
{
	int error;

	foreground_restore(foreground);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)!write(error_fd, &error, sizeof(error));
	_exit(foreground_exit_status(-error));
}

int foreground_start(const struct foreground *foreground, char *const *argv, pid_t *ret)
{
	int fds[2], error = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		be_command(foreground, argv, fds[1]);
	if (pid < 0)
		error = errno;
	(void)close(fds[1]);
	if (error == 0 && read(fds[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = 0; /* end of file: exec succeeded */
	(void)close(fds[0]);
	if (error != 0 && pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (error == 0)
		*ret = pid;
	return -error;
}
