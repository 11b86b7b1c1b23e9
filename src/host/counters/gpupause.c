/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/gpupause.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 10
#define NOTE_BYTES 64
#define WORDS_MAX 8 /* of a command */
#define COMMAND_BYTES 512

/* --- the program --- */

/* Cuts text into the words of a program's arguments. */
static void split(char *text, const char *ret[static WORDS_MAX + 1])
{
	char *rest = NULL;
	size_t cnt = 0;

	for (char *word = strtok_r(text, " ", &rest); word != NULL && cnt < WORDS_MAX;
	     word = strtok_r(NULL, " ", &rest))
		ret[cnt++] = word;
	ret[cnt] = NULL;
}

/*
 * Returns 0, -ENODEV: the program is missing or failed, -ETIME: it was killed, its effect is
 * unknown.
 */
static int run(const struct gpupause *pause, const char *command)
{
	static const int silent[3] = { SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_NULL };
	char text[COMMAND_BYTES];
	const char *argv[WORDS_MAX + 1];
	int64_t due_ns = clock_mono_ns() + pause->answer_ms * NSEC_PER_MSEC;
	int status = 0, got;
	pid_t pid;

	(void)snprintf(text, sizeof(text), "%s", command);
	split(text, argv);
	if (subprocess_start(argv, silent, &pid) < 0)
		return -ENODEV;
	while ((got = subprocess_reap(pid, &status)) == 0 && clock_mono_ns() < due_ns)
		(void)poll(NULL, 0, LOOK_MS);
	if (got == 1)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENODEV;
	if (got == 0) { /* else it was reaped elsewhere */
		(void)subprocess_signal(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	return -ETIME;
}

/* --- the note: "PID TOOL\n"; valid while locked --- */

static int make_locked(const char *path, const char *tool)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error;
	char text[NOTE_BYTES];
	int len = snprintf(text, sizeof(text), "%d %.*s\n", (int)getpid(), GPUPAUSE_NAME, tool);

	if (fd < 0)
		return -errno;
	error = flock(fd, LOCK_EX | LOCK_NB) != 0 ? -errno : file_write_all(fd, text, (size_t)len);
	if (error == 0)
		return fd;
	(void)close(fd);
	return error;
}

/* The note appears together with its lock: no process can mistake it for a dead one's. */
static int write_note(struct gpupause *pause)
{
	char unfinished[PATH_MAX];
	int fd, error = 0;

	if (snprintf(unfinished, sizeof(unfinished), "%s.new", pause->note) >=
	    (int)sizeof(unfinished))
		return -ENAMETOOLONG;
	(void)unlink(unfinished); /* of a dead process: no other holder */
	fd = make_locked(unfinished, pause->tool->name);
	if (fd < 0)
		return fd;
	if (link(unfinished, pause->note) != 0)
		error = -errno;
	(void)unlink(unfinished);
	if (error == 0)
		pause->held_fd = fd;
	else
		(void)close(fd);
	return error;
}

static void drop_note(struct gpupause *pause)
{
	(void)unlink(pause->note);
	if (pause->held_fd >= 0)
		(void)close(pause->held_fd);
	pause->held_fd = -1;
}

/* Whether the writer of the note still holds it. A note that cannot be opened has no holder. */
static bool writer_lives(const char *note)
{
	int fd = open(note, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool lives;

	if (fd < 0)
		return false;
	lives = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	(void)close(fd);
	return lives;
}

/* The tool that a note names; one that names none is taken for the first's. */
static const struct gpupause_tool *read_note(const struct gpupause *pause)
{
	int fd = open(pause->note, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[NOTE_BYTES] = "", *name;
	const struct gpupause_tool *ret = NULL;

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && (name = strchr(text, ' ')) != NULL) {
		name[strcspn(name, "\n")] = '\0';
		ret = gpupause_find(pause, name + 1);
	}
	if (fd >= 0)
		(void)close(fd);
	return ret != NULL ? ret : pause->tools[0];
}

/* --- the lock --- */

/* Its end is that of the process, too. Returns a file descriptor, which the caller closes. */
static int lock(const struct gpupause *pause)
{
	int64_t due_ns = clock_mono_ns() + 2 * pause->answer_ms * NSEC_PER_MSEC;
	char path[PATH_MAX];
	int fd, error;

	if (snprintf(path, sizeof(path), "%s.lock", pause->note) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		error = errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (error != -EBUSY || clock_mono_ns() >= due_ns) {
			(void)close(fd);
			return error;
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
	return fd;
}

/* --- under the lock --- */

static int resume(struct gpupause *pause)
{
	if (run(pause, pause->tool->resume) < 0)
		return -EIO;
	drop_note(pause);
	return 1;
}

static int pause_alone(struct gpupause *pause, const struct gpupause_tool *tool)
{
	int error;

	if (writer_lives(pause->note))
		return -EBUSY;
	(void)unlink(pause->note);
	pause->tool = tool;
	error = write_note(pause);
	if (error < 0)
		return error;
	error = run(pause, tool->pause);
	if (error == -ETIME) /* perhaps it is paused */
		return resume(pause) < 0 ? -ETIME : -ENODEV;
	if (error < 0)
		drop_note(pause);
	return error;
}

/* --- */

const struct gpupause_tool *gpupause_find(const struct gpupause *pause, const char *name)
{
	for (size_t i = 0; pause->tools[i] != NULL; i++) {
		if (strcmp(pause->tools[i]->name, name) == 0)
			return pause->tools[i];
	}
	return NULL;
}

int gpupause_begin(struct gpupause *pause, const struct gpupause_tool *tool)
{
	int fd = lock(pause), error;

	if (fd < 0)
		return fd;
	error = pause_alone(pause, tool);
	(void)close(fd);
	return error;
}

/* own: a pause of this process, even if its note was removed. */
static int resume_what(struct gpupause *pause, bool own)
{
	int ret = 0, fd;

	if (!own && access(pause->note, F_OK) != 0)
		return 0;
	fd = lock(pause);
	if (fd < 0)
		return fd;
	if (!own && access(pause->note, F_OK) == 0 && !writer_lives(pause->note)) {
		pause->tool = read_note(pause);
		own = true;
	}
	if (own)
		ret = resume(pause);
	(void)close(fd);
	return ret;
}

int gpupause_end(struct gpupause *pause)
{
	return resume_what(pause, pause->held_fd >= 0);
}

int gpupause_recover(struct gpupause *pause)
{
	return resume_what(pause, false);
}
