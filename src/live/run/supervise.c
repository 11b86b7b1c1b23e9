/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/supervise.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/process/foreground.h"
#include "base/subprocess.h"
#include "format/shared/block.h"
#include "live/run/attach.h"
#include "live/run/daemon.h"
#include "live/run/outdir.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_TIMEOUT_MS 5000
#define LAST_REPORT_NS (120 * NSEC_PER_SEC)
#define KILL_NS (5 * NSEC_PER_SEC)
#define KILL_LOOK_MS 10

/*
 * A daemon that is a member among several and ended by itself is started again: its results lie in its
 * spool, or those of other hosts lie in theirs. The others forget the one before within this time.
 */
#define RESTARTS_MAX 3u
#define RESTART_NS (5 * NSEC_PER_SEC)

#define EXIT_REFUSED 2 /* as for a wrong option */

static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
				 SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH };

struct supervisor {
	struct run_options options;
	struct outdir outdir;
	char socket[sizeof(((struct daemon_ready *)NULL)->socket)]; /* the daemon's */
	struct foreground foreground;
	int control_fd; /* to the daemon; -1: none */
	pid_t daemon, command;
	int64_t restart_ns; /* when another daemon is due; 0: none is */
	bool stopped;	    /* the command is stopped by a job-control signal */
	bool stop_pending;  /* the supervisor was asked to stop; it does once the command has */
	bool by_terminal;   /* ... by the terminal, which asked the daemon, too */
	bool ended;
	int status;	 /* the supervisor's exit status */
	int term_signal; /* that ended the command; 0: none */
};

static int exit_status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void unwatched(const char *why)
{
	log_line(LOG_WARNING, "event=not-attached why=\"%s\" effect=\"the job runs unwatched\"",
		 why);
}

static void look_at_gpus(bool calls_too)
{
	char plugin[PATH_MAX];

	attach_to_gpus();
	if (calls_too)
		attach_to_gpu_calls();
	if (attach_other_plugin(plugin))
		log_line(
			LOG_INFO,
			"event=nccl-plugin-kept plugin=\"%s\" effect=\"NCCL's own records of "
			"its collectives are lost\" remedy=\"remove the setting of " ATTACH_ENV_NCCL
			" or the plugin\"",
			plugin);
}

/* Returns the exit status of the daemon process. */
static int be_daemon(const struct supervisor *s, int fd)
{
	if (s->foreground.signal_fd >= 0)
		(void)close(s->foreground.signal_fd);
	(void)sigprocmask(SIG_SETMASK, &s->foreground.mask, NULL);
	return daemon_run(&s->options, fd);
}

static bool await_ready(int fd, struct daemon_ready *ret)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int got;

	do {
		got = poll(&poll_fd, 1, READY_TIMEOUT_MS);
	} while (got < 0 && errno == EINTR);
	return got == 1 && recv(fd, ret, sizeof(*ret), MSG_DONTWAIT) == (ssize_t)sizeof(*ret);
}

/* Returns whether there is a folder to write to; -EBUSY: the job must not start. */
static int open_folder(struct supervisor *s)
{
	char agent[PATH_MAX], package[PATH_MAX];
	struct err err;
	const struct member *member = &s->options.member;
	const char *given = s->options.output;
	char own[PATH_MAX];
	/* Without the agent no worker would connect to the daemon. */
	int ret = attach_find(s->options.program, agent, package, &err);

	/* On a file system of all hosts each member is given the same folder: it is the first's. */
	if (given != NULL && member->members > 1 && member->index > 0) {
		(void)snprintf(own, sizeof(own), "%.3900s/member-%d", given, member->index);
		given = own;
	}
	if (ret == 0)
		ret = outdir_open(&s->outdir, given, s->options.job_name, &err);
	if (ret == -EBUSY)
		log_line(LOG_ERROR, "event=folder-in-use why=\"%s\"", err.text);
	else if (ret < 0)
		unwatched(err.text);
	s->options.out_dir = s->outdir.path;
	return ret;
}

static void start_daemon(struct supervisor *s)
{
	struct daemon_ready ready = { .text = "the daemon did not start in time" };
	struct err err;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		unwatched(strerror(errno));
		return;
	}
	s->daemon = fork();
	if (s->daemon == 0) {
		(void)close(fds[0]);
		exit(be_daemon(s, fds[1]));
	}
	(void)close(fds[1]);
	s->control_fd = fds[0];
	if (s->daemon < 0 || !await_ready(fds[0], &ready) || ready.status != 0)
		unwatched(ready.text);
	else if (attach_environment(s->options.program, &ready, &err) < 0)
		unwatched(err.text);
	else
		(void)snprintf(s->socket, sizeof(s->socket), "%s", ready.socket);
	if (s->socket[0] != '\0' && s->options.source == ORDER_SOURCE_AGENT)
		look_at_gpus(s->options.gpu_calls);
}

/* The job goes on; processes that it starts from here on find the socket that they know. */
static void start_again(struct supervisor *s)
{
	struct daemon_ready ready = { .text = "the daemon did not start in time" };
	int fds[2];

	s->restart_ns = 0;
	s->options.restarts++;
	s->options.socket = s->socket;
	if (s->control_fd >= 0)
		(void)close(s->control_fd);
	s->control_fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		unwatched(strerror(errno));
		return;
	}
	s->daemon = fork();
	if (s->daemon == 0) {
		(void)close(fds[0]);
		exit(be_daemon(s, fds[1]));
	}
	(void)close(fds[1]);
	s->control_fd = fds[0];
	if (s->daemon < 0 || !await_ready(fds[0], &ready) || ready.status != 0)
		unwatched(ready.text);
	else
		log_line(LOG_WARNING,
			 "event=daemon-restarted restarts=%u effect=\"results that were kept are "
			 "sent; ranks that ran before are not watched any more\"",
			 s->options.restarts);
}

static void notify_daemon(const struct supervisor *s, int exit_status, int signal)
{
	struct daemon_news news = { .pid = s->command,
				    .exit_status = exit_status,
				    .signal = signal };

	if (s->control_fd >= 0)
		(void)send(s->control_fd, &news, sizeof(news), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * Stops the supervisor after the command has stopped, for the shell to see. A command that
 * catches the signal, or whose group no shell watches, does not stop, nor does the supervisor.
 */
static void stop_with_command(struct supervisor *s)
{
	if (!s->stop_pending || !s->stopped)
		return;
	s->stop_pending = false;
	if (!s->by_terminal && s->daemon > 0) /* the silence of a stopped job must not count */
		(void)subprocess_signal(s->daemon, SIGSTOP);
	(void)raise(SIGSTOP);
	if (!s->by_terminal && s->daemon > 0)
		(void)subprocess_signal(s->daemon, SIGCONT);
}

static void reap(struct supervisor *s)
{
	int status;

	while (!s->ended &&
	       waitpid(s->command, &status, WNOHANG | WUNTRACED | WCONTINUED) == s->command) {
		s->stopped = WIFSTOPPED(status);
		if (s->stopped || WIFCONTINUED(status))
			continue;
		s->ended = true;
		s->status = exit_status_of(status);
		s->term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	}
	stop_with_command(s);
	if (s->daemon > 0 && waitpid(s->daemon, &status, WNOHANG) == s->daemon) {
		char why[64];

		s->daemon = 0;
		(void)snprintf(why, sizeof(why), "the daemon ended with status %d",
			       exit_status_of(status));
		if (!s->ended)
			unwatched(why);
		if (!s->ended && s->socket[0] != '\0' && s->options.member.members != 1 &&
		    s->options.restarts < RESTARTS_MAX)
			s->restart_ns = clock_mono_ns() + RESTART_NS;
	}
}

static bool asks_to_end(uint32_t number)
{
	return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void take_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;
	bool by_terminal;

	if (read(s->foreground.signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD) {
		reap(s);
		return;
	}
	by_terminal = info.ssi_code == SI_KERNEL;
	if (!s->ended && info.ssi_pid != (uint32_t)s->command && asks_to_end(info.ssi_signo))
		notify_daemon(s, -1, (int)info.ssi_signo);
	if (!s->ended && !by_terminal && info.ssi_pid != (uint32_t)s->command)
		(void)subprocess_signal(s->command, (int)info.ssi_signo);
	if (info.ssi_signo == SIGTSTP) {
		s->stop_pending = true;
		s->by_terminal = by_terminal;
		stop_with_command(s);
	}
	/* The job is over and only its last report is awaited: SIGINT and SIGTERM end the wait. */
	if (s->ended && s->daemon > 0 && (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM))
		(void)subprocess_signal(s->daemon, SIGKILL);
}

/* For poll(). until_ns: 0: without an end. */
static int left_ms(int64_t until_ns)
{
	int64_t left_ns = until_ns - clock_mono_ns();

	return until_ns == 0 ? -1 : (int)(MAX(left_ns, 0) / NSEC_PER_MSEC) + 1;
}

static void wait_for(struct supervisor *s, bool daemon, int64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = s->foreground.signal_fd, .events = POLLIN };

	reap(s);
	while (daemon ? s->daemon > 0 : !s->ended) {
		if (daemon && clock_mono_ns() >= deadline_ns)
			return;
		if (s->restart_ns > 0 && clock_mono_ns() >= s->restart_ns)
			start_again(s);
		if (poll(&poll_fd, 1, left_ms(daemon ? deadline_ns : s->restart_ns)) == 1)
			take_signal(s);
	}
}

/* A process that waits for a file server is not ended by a signal: the job's status goes on. */
static void end_daemon(struct supervisor *s)
{
	int64_t until_ns = clock_mono_ns() + KILL_NS;
	pid_t ended = 0;

	(void)subprocess_signal(s->daemon, SIGKILL);
	while (ended == 0 && clock_mono_ns() < until_ns) {
		ended = waitpid(s->daemon, NULL, WNOHANG);
		if (ended == 0)
			(void)poll(NULL, 0, KILL_LOOK_MS);
	}
	if (ended == 0)
		log_line(LOG_WARNING,
			 "event=daemon-left pid=%d why=\"it waits for a disk or a file server\"",
			 (int)s->daemon);
	s->daemon = 0;
}

static void finish_daemon(struct supervisor *s)
{
	if (s->restart_ns > 0) { /* what its spool has is sent, too */
		(void)poll(NULL, 0, left_ms(s->restart_ns));
		start_again(s);
	}
	notify_daemon(s, s->status, s->term_signal);
	if (s->daemon > 0)
		wait_for(s, true, clock_mono_ns() + LAST_REPORT_NS);
	if (s->daemon > 0)
		end_daemon(s);
	if (s->control_fd >= 0)
		(void)close(s->control_fd);
}

/* The command could not be started: nothing of the run remains. Returns the exit status. */
static int give_up(struct supervisor *s, const char *command, int error)
{
	log_line(LOG_ERROR, "event=cannot-start command=\"%s\" why=\"%s\"", command,
		 strerror(-error));
	if (s->daemon > 0)
		end_daemon(s);
	if (s->socket[0] != '\0') {
		rundir_unlink(s->options.out_dir, s->socket);
		(void)unlink(s->socket);
	}
	outdir_undo(&s->outdir);
	return foreground_exit_status(error);
}

/* The first line of a run, in front of what the command prints. */
static void announce(const struct supervisor *s, const char *command)
{
	char path[PATH_MAX];

	/* It may be found and still not be a program: then an error follows. */
	if (s->socket[0] == '\0' || subprocess_find(command, path, sizeof(path)) < 0 ||
	    access(path, X_OK) != 0)
		return;
	if (s->outdir.earlier[0] != '\0')
		log_line(LOG_INFO, "event=earlier-results-kept dir=\"%s\"", s->outdir.earlier);
	if (!s->options.quiet)
		log_line(LOG_INFO, "event=run job=\"%s\" command=\"%s\" dir=\"%s\"",
			 s->options.job_name, command, s->options.out_dir);
}

int supervise(const struct run_options *options, char *const *argv)
{
	struct supervisor s = { .options = *options, .control_fd = -1, .outdir.lock_fd = -1 };
	bool watched;
	int ret = open_folder(&s);

	if (ret == -EBUSY)
		return EXIT_REFUSED;
	watched = ret == 0;
	ret = foreground_begin(&s.foreground, forwarded, ARRAY_SIZE(forwarded));

	if (ret < 0) {
		unwatched(strerror(-ret));
		foreground_restore(&s.foreground);
		(void)execvp(argv[0], argv);
		return foreground_exit_status(-errno);
	}
	if (watched)
		start_daemon(&s);
	announce(&s, argv[0]);
	ret = foreground_start(&s.foreground, argv, &s.command);
	if (ret < 0)
		return give_up(&s, argv[0], ret);
	notify_daemon(&s, -1, 0);
	if (s.socket[0] != '\0')
		outdir_started(&s.outdir);
	wait_for(&s, false, 0);
	finish_daemon(&s);
	(void)close(s.foreground.signal_fd);
	return s.status;
}
