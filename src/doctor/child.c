/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/child.h"

#include "base/clock.h"
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 20
#define REAP_MS 1000 /* for a killed child; a child that sleeps in the kernel may never end */

/* The work of a child: a function or a program. */
struct errand {
	void (*work)(const void *arg, int fd);
	const void *arg;
	char *const *argv, *const *environment;
};

static _noreturn_ void be_child(const struct errand *errand, int fd)
{
	const struct rlimit no_core = { 0, 0 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(errand->argv != NULL ? fd : null, STDOUT_FILENO);
		(void)dup2(errand->argv != NULL ? fd : null, STDERR_FILENO);
	}
	if (errand->argv == NULL) {
		errand->work(errand->arg, fd);
		_exit(0);
	}
	(void)execve(errand->argv[0], errand->argv, errand->environment);
	dprintf(fd, "%s: %s\n", errand->argv[0], strerror(errno));
	_exit(127);
}

/* Reads the output available now. Returns false at the end of the pipe. */
static bool read_output(int fd, char *text, size_t size, size_t *len)
{
	char chunk[4096];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) > 0) {
		size_t room = size - 1 - *len, part = MIN((size_t)got, room);

		memcpy(text + *len, chunk, part);
		*len += part;
	}
	return got < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Whether the child has ended. It stays a zombie until reaped, so its pid is not reused. */
static int has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
		return -errno;
	return info.si_pid == pid;
}

/* Kills the child and the processes it left behind, and fills ret. */
static void end_child(pid_t pid, struct child_end *ret)
{
	int status, got;

	(void)subprocess_signal_group(pid, SIGKILL);
	if (ret->late)
		(void)subprocess_signal(pid, SIGKILL); /* its group may not exist yet */
	for (int waited_ms = 0; (got = subprocess_reap(pid, &status)) == 0 && waited_ms < REAP_MS;
	     waited_ms += TICK_MS)
		(void)poll(NULL, 0, TICK_MS);
	if (got != 1 || ret->late)
		return;
	if (WIFSIGNALED(status))
		ret->signal = WTERMSIG(status);
	else
		ret->status = WEXITSTATUS(status);
}

/*
 * Reads until the child has ended. Not until the end of the pipe: processes left behind by the
 * child may keep it open.
 */
static void follow(pid_t pid, int fd, int limit_ms, char *text, size_t size, struct child_end *ret)
{
	int64_t end_ns = clock_mono_ns() + limit_ms * NSEC_PER_MSEC;
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	int ended;

	*ret = (struct child_end){ 0 };
	for (;;) {
		ended = has_ended(pid);
		if (!read_output(fd, text, size, &len))
			poller.fd = -1;
		if (ended != 0)
			break;
		ret->late = clock_mono_ns() >= end_ns;
		if (ret->late)
			break;
		(void)poll(&poller, 1, TICK_MS);
	}
	if (ended >= 0) /* negative: already reaped elsewhere */
		end_child(pid, ret);
	text[len] = '\0';
}

static int run(const struct errand *errand, int limit_ms, char *text, size_t size,
	       struct child_end *ret)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		be_child(errand, fds[1]);
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return -EAGAIN;
	}
	(void)setpgid(pid, pid); /* parent and child both call it: either may run first */
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	follow(pid, fds[0], limit_ms, text, size, ret);
	(void)close(fds[0]);
	return 0;
}

int child_call(void (*work)(const void *arg, int fd), const void *arg, int limit_ms, char *text,
	       size_t size, struct child_end *ret)
{
	return run(&(struct errand){ .work = work, .arg = arg }, limit_ms, text, size, ret);
}

int child_run(char *const *argv, char *const *environment, int limit_ms, char *text, size_t size,
	      struct child_end *ret)
{
	return run(&(struct errand){ .argv = argv, .environment = environment }, limit_ms, text,
		   size, ret);
}

void child_end_text(const struct child_end *end, char *text, size_t size)
{
	if (end->late)
		(void)snprintf(text, size, "did not answer in time");
	else if (end->signal != 0)
		(void)snprintf(text, size, "crashed (signal %d)", end->signal);
	else if (end->status != 0)
		(void)snprintf(text, size, "exit status %d", end->status);
	else
		(void)snprintf(text, size, "%s", "");
}
