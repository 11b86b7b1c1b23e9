/* SPDX-License-Identifier: Apache-2.0 */
#include "live/gpuwatch/gpuwatch_sampler.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "host/counters/gpucounters.h"
#include "host/counters/gpushare.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 100
#define END_MS 2000 /* for a sampler that was asked to stop */
#define NOTE_FOLDER "paused"
#define LAST_RESUMES 3 /* attempts at exit; then the next keeper resumes the tool */

/* Messages between keeper and sampler, one packet each; WORD_PAUSE is followed by a tool's name. */
enum word {
	WORD_ALIVE = 'a',
	WORD_PAUSE = 'p', /* that tool holds the counters */
	WORD_YES = 'y',
	WORD_NO = 'n',
	WORD_STOP = 's',
};

struct keeper {
	const struct gpusampler_options *options;
	struct gpushare_writer share;
	struct gpupause pause;
	pid_t pid; /* its own */
	int signal_fd;
	pid_t child; /* 0: none */
	int child_fd;
	pid_t stuck; /* a killed child, asleep in a driver, which prevents another; 0: none */
	int64_t started_ns, heard_ns, not_before_ns;
	/* Resumes the paused tool: this keeper's, or a dead keeper's; NULL: none is paused. */
	int (*give_back)(struct gpupause *pause);
	int64_t give_back_ns; /* not before */
	bool stop;
	enum gpusampler_end end; /* of the latest child */
};

static bool say(int fd, enum word word)
{
	char byte = (char)word;

	return send(fd, &byte, 1, MSG_NOSIGNAL) == 1;
}

static void fill_header(struct sidecar *piece, pid_t pid)
{
	piece->header.pid = (uint32_t)pid;
	piece->header.mono_ns = piece->header.start_ns = piece->header.end_ns = clock_mono_ns();
	piece->header.wall_ns = clock_wall_ns();
}

/* --- the sampler --- */

struct child {
	struct keeper *keeper; /* the child's copy */
	int fd;
	bool asked, paused;
	unsigned limit_s; /* limit of a call of the library */
};

/* Blocks until the keeper has tried to pause the tool. */
static bool pause_tool(void *arg, const struct gpupause_tool *tool)
{
	char answer = 0, text[1 + GPUPAUSE_NAME];
	struct child *child = arg;
	int len = snprintf(text, sizeof(text), "%c%s", WORD_PAUSE, tool->name);

	if (child->asked)
		return false;
	child->asked = true;
	(void)alarm(child->limit_s + GPUPAUSE_ANSWER_MS / 1000);
	child->paused = send(child->fd, text, (size_t)len, MSG_NOSIGNAL) == len &&
			recv(child->fd, &answer, 1, 0) == 1 && answer == WORD_YES;
	return child->paused;
}

static void write_piece(struct child *child, struct sidecar *piece)
{
	fill_header(piece, child->keeper->pid);
	(void)!gpushare_write(&child->keeper->share, piece);
	sidecar_done(piece);
}

/* Returns false when the keeper requests a stop, or is gone: then sets *ret_orphan. */
static bool wait_a_drain(struct child *child, bool *ret_orphan)
{
	struct pollfd poll_fd = { .fd = child->fd, .events = POLLIN };
	char word;
	ssize_t got;

	if (poll(&poll_fd, 1, GPUCOUNTERS_DRAIN_MS) != 1)
		return true;
	got = recv(child->fd, &word, 1, MSG_DONTWAIT);
	*ret_orphan = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
	return !*ret_orphan && (got != 1 || word != WORD_STOP);
}

static void sample(struct child *child, struct gpucounters *counters, bool *ret_orphan)
{
	int64_t due_ns = 0;

	while (wait_a_drain(child, ret_orphan)) {
		int cnt = gpucounters_drain(counters);
		struct sidecar piece = { 0 };

		(void)alarm(child->limit_s);
		if (clock_mono_ns() < due_ns && cnt > 0)
			continue;
		due_ns = clock_mono_ns() + GPUSAMPLER_PIECE_MS * NSEC_PER_MSEC;
		(void)!gpucounters_take(counters, &piece);
		write_piece(child, &piece);
		(void)say(child->fd, WORD_ALIVE);
		if (cnt == 0)
			return;
	}
}

/* A dying keeper closes its files one by one; it is gone once the parent's pid has changed. */
static bool keeper_is_gone(const struct keeper *keeper, bool orphan)
{
	for (int i = 0; orphan && getppid() == keeper->pid && i < END_MS / LOOK_MS; i++)
		(void)poll(NULL, 0, LOOK_MS);
	return getppid() != keeper->pid;
}

static _noreturn_ void be_child(struct keeper *keeper, int fd)
{
	const struct rlimit no_core = { 0, 0 };
	struct child child = { .keeper = keeper,
			       .fd = fd,
			       .limit_s = (unsigned)keeper->options->silent_ms / 1000 + 1 };
	const struct gpucounters_host host = { gpucounters_all, pause_tool, &child };
	struct gpucounters *counters;
	struct sidecar piece = { 0 };
	bool orphan = false;
	int error;

	(void)setrlimit(RLIMIT_CORE, &no_core);
	/* The keeper kills a sampler that hangs; the alarm ends an orphan that hangs. */
	(void)alarm(child.limit_s);
	error = gpucounters_start(&host, &counters);
	if (error == 0)
		sample(&child, counters, &orphan);
	(void)gpucounters_stop(counters, &piece);
	write_piece(&child, &piece);
	/* The keeper may also have died while the library failed to start. */
	if (child.paused && keeper_is_gone(keeper, orphan))
		(void)gpupause_end(&keeper->pause);
	_exit(error < 0 ? GPUSAMPLER_NOTHING : GPUSAMPLER_DONE);
}

/* --- the keeper --- */

static void start_child(struct keeper *keeper)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return;
	keeper->child = fork();
	if (keeper->child == 0) {
		(void)close(fds[0]);
		if (keeper->options->stop_fd >= 0)
			(void)close(keeper->options->stop_fd);
		be_child(keeper, fds[1]);
	}
	(void)close(fds[1]);
	if (keeper->child < 0) {
		(void)close(fds[0]);
		keeper->child = 0;
		keeper->end = GPUSAMPLER_CRASHED;
		return;
	}
	keeper->child_fd = fds[0];
	keeper->started_ns = keeper->heard_ns = clock_mono_ns();
}

/* Writes a piece with the reason for readers when the sampler itself cannot. */
static void write_reason(struct keeper *keeper, const char *why)
{
	struct sidecar piece = { 0 };
	struct sidecar_gpu none = { .index = SIDECAR_GPU_NONE };

	(void)snprintf(none.why, sizeof(none.why), "%s", why);
	fill_header(&piece, getpid());
	if (vec_push(&piece.gpus, none) == 0)
		(void)!gpushare_write(&keeper->share, &piece);
	sidecar_done(&piece);
}

/* Waits for a dead or dying child. Returns false for one asleep in a driver, which does not die. */
static bool bury(pid_t child, int limit_ms, int *ret_status)
{
	int64_t due_ns = clock_mono_ns() + limit_ms * NSEC_PER_MSEC;
	int got;

	while ((got = subprocess_reap(child, ret_status)) == 0) {
		if (clock_mono_ns() >= due_ns)
			return false;
		(void)poll(NULL, 0, GPUCOUNTERS_DRAIN_MS);
	}
	if (got < 0) /* reaped elsewhere: its status is unknown */
		*ret_status = W_EXITCODE(GPUSAMPLER_CRASHED, 0);
	return true;
}

static enum gpusampler_end end_of(struct keeper *keeper, int status)
{
	char why[GPUHW_WHY];

	if (WIFEXITED(status))
		return (enum gpusampler_end)WEXITSTATUS(status);
	(void)snprintf(why, sizeof(why), "PM sampling: its process crashed (signal %d)",
		       WTERMSIG(status));
	write_reason(keeper, why);
	return GPUSAMPLER_CRASHED;
}

/* The name of the tool that is paused, or was found paused. */
static const char *paused_name(const struct keeper *keeper)
{
	return keeper->pause.tool != NULL ? keeper->pause.tool->name : "another tool";
}

/* Resumes the paused tool, which has no metrics meanwhile; a failure is retried. */
static void give_back(struct keeper *keeper)
{
	bool first = keeper->give_back_ns == 0;

	if (keeper->give_back == NULL)
		return;
	if (keeper->give_back(&keeper->pause) >= 0) {
		keeper->give_back = NULL;
		keeper->give_back_ns = 0;
		return;
	}
	keeper->give_back_ns = clock_mono_ns() + keeper->options->again_ns;
	if (first)
		log_line(
			LOG_WARNING,
			"event=counters-not-given-back tool=\"%s\" effect=\"tried again; by hand: %s\"",
			paused_name(keeper),
			keeper->pause.tool != NULL ? keeper->pause.tool->resume : "?");
}

static enum gpusampler_end kill_child(struct keeper *keeper)
{
	int status;

	(void)subprocess_signal(keeper->child, SIGKILL);
	if (!bury(keeper->child, END_MS, &status))
		keeper->stuck = keeper->child;
	write_reason(keeper, "PM sampling: killed, it did not answer");
	return keeper->stuck > 0 ? GPUSAMPLER_STUCK : GPUSAMPLER_HUNG;
}

/* Ends the child, which may be stuck, and resumes the paused tool, now or later. */
static void end_child(struct keeper *keeper, int limit_ms)
{
	int status = 0;

	if (bury(keeper->child, limit_ms, &status))
		keeper->end = end_of(keeper, status);
	else
		keeper->end = kill_child(keeper);
	(void)close(keeper->child_fd);
	keeper->child = 0;
	if (keeper->end != GPUSAMPLER_DONE)
		keeper->not_before_ns = clock_mono_ns() + keeper->options->again_ns;
	give_back(keeper);
}

static void stop_child(struct keeper *keeper)
{
	if (keeper->child == 0)
		return;
	(void)say(keeper->child_fd, WORD_STOP);
	end_child(keeper, END_MS);
}

static void pause_for_child(struct keeper *keeper, const char *name)
{
	const struct gpupause_tool *tool = gpupause_find(&keeper->pause, name);
	int error = tool != NULL ? gpupause_begin(&keeper->pause, tool) : -ENODEV;

	if (error == 0 || error == -ETIME)
		keeper->give_back = gpupause_end;
	(void)say(keeper->child_fd, error == 0 ? WORD_YES : WORD_NO);
}

static void hear_child(struct keeper *keeper)
{
	char text[1 + GPUPAUSE_NAME] = "";
	ssize_t got = recv(keeper->child_fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 1) {
		end_child(keeper, END_MS);
		return;
	}
	if (text[0] == WORD_PAUSE)
		pause_for_child(keeper, text + 1);
	keeper->heard_ns = clock_mono_ns();
}

static void look(struct keeper *keeper)
{
	const struct gpusampler_options *options = keeper->options;
	struct pollfd poll_fds[] = { { .fd = options->stop_fd, .events = POLLIN },
				     { .fd = keeper->signal_fd, .events = POLLIN },
				     { .fd = keeper->child > 0 ? keeper->child_fd : -1,
				       .events = POLLIN } };

	if (poll(poll_fds, ARRAY_SIZE(poll_fds), LOOK_MS) <= 0)
		return;
	keeper->stop |= poll_fds[0].revents != 0 || poll_fds[1].revents != 0;
	if (poll_fds[2].revents != 0)
		hear_child(keeper);
}

static void mind_silence(struct keeper *keeper)
{
	if (keeper->child > 0 &&
	    clock_mono_ns() - keeper->heard_ns > keeper->options->silent_ms * NSEC_PER_MSEC)
		end_child(keeper, 0);
}

/* Reaps a stuck child and retries a failed resume. */
static void mind_leftovers(struct keeper *keeper)
{
	int status;

	if (keeper->stuck > 0 && subprocess_reap(keeper->stuck, &status) != 0) {
		keeper->stuck = 0;
		keeper->end = GPUSAMPLER_HUNG;
	}
	if (keeper->child == 0 && clock_mono_ns() >= keeper->give_back_ns)
		give_back(keeper);
}

/* Not beside a stuck child, which a new one would join, nor while a tool is being resumed. */
static bool may_start(const struct keeper *keeper, int64_t now_ns)
{
	return keeper->child == 0 && keeper->stuck == 0 && keeper->give_back == NULL &&
	       now_ns >= keeper->not_before_ns;
}

/* Starts and stops the sampler on request; releases the counters after longest_ns at the latest. */
static void mind_wishes(struct keeper *keeper)
{
	int64_t now_ns = clock_mono_ns();
	bool wanted = gpushare_is_wanted(&keeper->share, clock_wall_ns());

	if (wanted && may_start(keeper, now_ns)) {
		start_child(keeper);
	} else if (keeper->child > 0 && !wanted) {
		stop_child(keeper);
	} else if (keeper->child > 0 && now_ns - keeper->started_ns > keeper->options->longest_ns) {
		stop_child(keeper);
		keeper->not_before_ns = clock_mono_ns() + keeper->options->rest_ns;
	}
}

static void keep(struct keeper *keeper)
{
	bool standing = keeper->options->stop_fd < 0;
	char why[GPUHW_WHY];

	(void)snprintf(why, sizeof(why), "%.16s was left paused, and does not resume",
		       paused_name(keeper));
	if (!standing && may_start(keeper, clock_mono_ns()))
		start_child(keeper);
	else if (!standing)
		write_reason(keeper, why);
	while (!keeper->stop) {
		look(keeper);
		mind_silence(keeper);
		mind_leftovers(keeper);
		if (standing && !keeper->stop)
			mind_wishes(keeper);
	}
	stop_child(keeper);
	for (int i = 1; i < LAST_RESUMES && keeper->give_back != NULL; i++) {
		(void)poll(NULL, 0, LOOK_MS);
		give_back(keeper);
	}
}

/*
 * Blocks the terminal's signals, which are for the job: the keeper's parent closes stop_fd. Resets
 * an inherited SIG_IGN of SIGCHLD, with which no child's exit status could be read.
 */
static void take_signals(struct keeper *keeper)
{
	static const int of_terminals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU };
	sigset_t blocked, handled;

	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(of_terminals); i++)
		(void)sigaddset(&blocked, of_terminals[i]);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&handled);
	(void)sigaddset(&handled, SIGTERM);
	(void)sigaddset(&handled, SIGINT);
	keeper->signal_fd = keeper->options->stop_fd < 0
				    ? signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK)
				    : -1;
}

static int recover(struct gpupause *pause)
{
	int done = gpupause_recover(pause);

	if (done > 0)
		log_line(LOG_WARNING,
			 "event=counters-given-back tool=%s why=\"who paused it had died\"",
			 pause->tool->name);
	return done;
}

void gpusampler_recover(void)
{
	char note[PATH_MAX];
	struct gpupause pause = { gpucounters_tools, note, GPUPAUSE_ANSWER_MS, NULL, -1 };

	if (gpusampler_note(NULL, note, sizeof(note), NULL) == 0)
		(void)recover(&pause);
}

enum gpusampler_end gpusampler_run(const struct gpusampler_options *options, struct err *err)
{
	struct keeper keeper = { .options = options,
				 .give_back = recover,
				 .pause = { gpucounters_tools, options->note, GPUPAUSE_ANSWER_MS,
					    NULL, -1 },
				 .pid = getpid() };

	if (gpushare_create(options->dir, options->stop_fd < 0, &keeper.share, err) < 0)
		return GPUSAMPLER_NO_START;
	take_signals(&keeper);
	if (options->stop_fd < 0)
		gpusampler_recover(); /* a job of this user, which has a note of its own */
	give_back(&keeper);
	keep(&keeper);
	gpushare_close_writer(&keeper.share);
	if (options->stop_fd >= 0)
		(void)rmdir(options->dir); /* a shared folder remains */
	if (keeper.signal_fd >= 0)
		(void)close(keeper.signal_fd);
	return keeper.end;
}

static int note_in_run_directory(char *ret, size_t size, struct err *err)
{
	char socket[128], *slash;
	int error = rundir_socket(socket, sizeof(socket), err);

	if (error < 0)
		return error;
	slash = strrchr(socket, '/');
	if ((size_t)snprintf(ret, size, "%.*s/gpu-tool-paused", (int)(slash - socket), socket) >=
	    size)
		return err_set(err, ENAMETOOLONG, "%s: path too long", socket);
	return 0;
}

int gpusampler_note(const char *dir, char *ret, size_t size, struct err *err)
{
	char folder[PATH_MAX];

	if (dir == NULL)
		return note_in_run_directory(ret, size, err);
	if ((size_t)snprintf(ret, size, "%s/" NOTE_FOLDER "/note", dir) >= size ||
	    (size_t)snprintf(folder, sizeof(folder), "%s/" NOTE_FOLDER, dir) >= sizeof(folder))
		return err_set(err, ENAMETOOLONG, "%s: path too long", dir);
	return rundir_private(folder, err);
}
