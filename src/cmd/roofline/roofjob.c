/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/roofjob.h"

#include "base/subprocess.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 200
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

struct state {
	sigset_t old_mask;
	struct sigaction old_child;
	int signal_fd;
	pid_t pid;
	bool complete, asked, ended;
	int wait_status;
};

static int block_signals(struct state *s)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t mask;

	(void)sigemptyset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		(void)sigaddset(&mask, forwarded[i]);
	(void)sigaddset(&mask, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &mask, &s->old_mask);
	(void)sigaction(SIGCHLD, &usual, &s->old_child);
	s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

static void restore_signals(const struct state *s)
{
	(void)sigaction(SIGCHLD, &s->old_child, NULL);
	(void)sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

/* In the child: returns only if exec fails; writes errno to the pipe. */
static void be_command(const struct state *s, char *const *argv, int error_fd)
{
	int error;

	restore_signals(s);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)!write(error_fd, &error, sizeof(error));
	_exit(EXIT_NOT_FOUND);
}

static int start(struct state *s, char *const *argv)
{
	int fds[2], error = 0;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	s->pid = fork();
	if (s->pid == 0)
		be_command(s, argv, fds[1]);
	if (s->pid < 0)
		error = errno;
	(void)close(fds[1]);
	if (error == 0 && read(fds[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = 0; /* end of file: exec succeeded */
	(void)close(fds[0]);
	if (error != 0 && s->pid > 0)
		(void)waitpid(s->pid, NULL, 0);
	return -error;
}

static void take_signal(struct state *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD || s->ended)
			continue;
		/* The terminal and the command itself have sent it to the command already. */
		if (info.ssi_code != SI_KERNEL && info.ssi_pid != (uint32_t)s->pid)
			(void)subprocess_signal(s->pid, (int)info.ssi_signo);
	}
}

static void look(struct state *s, const struct roofjob *job)
{
	if (s->complete || !job->look(job->arg))
		return;
	s->complete = true;
	if (job->stop && !s->ended) {
		s->asked = true;
		(void)subprocess_signal(s->pid, SIGTERM);
	}
}

static int status_of(const struct state *s)
{
	if (s->asked)
		return EXIT_DONE;
	return WIFSIGNALED(s->wait_status) ? 128 + WTERMSIG(s->wait_status)
					   : WEXITSTATUS(s->wait_status);
}

int roofjob_run(const struct roofjob *job, char *const *argv)
{
	struct state s = { .signal_fd = -1 };
	int error = block_signals(&s);

	if (error == 0)
		error = start(&s, argv);
	if (error < 0) {
		restore_signals(&s);
		(void)cmd_fail("cannot start %s: %s", argv[0], strerror(-error));
		return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	while (!s.ended) {
		struct pollfd poll_fd = { .fd = s.signal_fd, .events = POLLIN };

		if (poll(&poll_fd, 1, s.complete ? -1 : LOOK_MS) == 1)
			take_signal(&s);
		s.ended = waitpid(s.pid, &s.wait_status, WNOHANG) == s.pid;
		if (!s.ended)
			look(&s, job);
	}
	(void)close(s.signal_fd);
	restore_signals(&s);
	return status_of(&s);
}
