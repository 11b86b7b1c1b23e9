/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/roofjob.h"

#include "base/process/foreground.h"
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

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

struct state {
	struct foreground foreground;
	pid_t pid;
	bool complete, asked, ended;
	int wait_status;
};

static void take_signal(struct state *s)
{
	struct signalfd_siginfo info;

	while (read(s->foreground.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
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
	struct state s = { .pid = 0 };
	int error = foreground_begin(&s.foreground, forwarded, ARRAY_SIZE(forwarded));

	if (error == 0)
		error = foreground_start(&s.foreground, argv, &s.pid);
	if (error < 0) {
		foreground_restore(&s.foreground);
		(void)cmd_fail("cannot start %s: %s", argv[0], strerror(-error));
		return foreground_exit_status(error);
	}
	while (!s.ended) {
		struct pollfd poll_fd = { .fd = s.foreground.signal_fd, .events = POLLIN };

		if (poll(&poll_fd, 1, s.complete ? -1 : LOOK_MS) == 1)
			take_signal(&s);
		s.ended = waitpid(s.pid, &s.wait_status, WNOHANG) == s.pid;
		if (!s.ended)
			look(&s, job);
	}
	(void)close(s.foreground.signal_fd);
	foreground_restore(&s.foreground);
	return status_of(&s);
}
