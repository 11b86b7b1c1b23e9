/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/host/dcgm.h"

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
#define NOTE_BYTES 16

bool dcgm_owns_counters(const char *chip)
{
	static const char *const before_hopper[] = { "TU", "GA", "AD" };

	for (size_t i = 0; i < ARRAY_SIZE(before_hopper); i++) {
		if (strncmp(chip, before_hopper[i], 2) == 0)
			return true;
	}
	return false;
}

/* --- the program --- */

/* Returns 0, -ENODEV: it isn't there or says no, -ETIME: it was killed, nobody knows. */
static int run(const struct dcgm *dcgm, const char *order)
{
	static const int silent[3] = { SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_NULL };
	const char *const argv[] = { dcgm->program, "profile", order, NULL };
	int64_t due_ns = clock_mono_ns() + dcgm->answer_ms * NSEC_PER_MSEC;
	int status = 0;
	pid_t pid, got;

	if (subprocess_start(argv, silent, &pid) < 0)
		return -ENODEV;
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_mono_ns() < due_ns)
		(void)poll(NULL, 0, LOOK_MS);
	if (got == pid)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENODEV;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return -ETIME;
}

/* --- the note: "PID\n", for people; what counts is its lock --- */

static int make_locked(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error;
	char text[NOTE_BYTES];
	int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (fd < 0)
		return -errno;
	error = flock(fd, LOCK_EX | LOCK_NB) != 0 ? -errno : file_write_all(fd, text, (size_t)len);
	if (error == 0)
		return fd;
	(void)close(fd);
	return error;
}

/* It is there with its lock or not at all: nobody takes it for a dead one's. */
static int write_note(struct dcgm *dcgm)
{
	char unfinished[PATH_MAX];
	int fd, error = 0;

	if (snprintf(unfinished, sizeof(unfinished), "%s.new", dcgm->note) >=
	    (int)sizeof(unfinished))
		return -ENAMETOOLONG;
	(void)unlink(unfinished); /* of a dead process: we are alone */
	fd = make_locked(unfinished);
	if (fd < 0)
		return fd;
	if (link(unfinished, dcgm->note) != 0)
		error = -errno;
	(void)unlink(unfinished);
	if (error == 0)
		dcgm->held_fd = fd;
	else
		(void)close(fd);
	return error;
}

static void drop_note(struct dcgm *dcgm)
{
	(void)unlink(dcgm->note);
	if (dcgm->held_fd >= 0)
		(void)close(dcgm->held_fd);
	dcgm->held_fd = -1;
}

/* Whether the one that wrote it does. What cannot be opened is nobody's. */
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

/* --- the lock --- */

/* Its end is that of the process, too. Returns a file descriptor, which the caller closes. */
static int lock(const struct dcgm *dcgm)
{
	int64_t due_ns = clock_mono_ns() + 2 * dcgm->answer_ms * NSEC_PER_MSEC;
	char path[PATH_MAX];
	int fd, error;

	if (snprintf(path, sizeof(path), "%s.lock", dcgm->note) >= (int)sizeof(path))
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

static int resume(struct dcgm *dcgm)
{
	if (run(dcgm, "--resume") < 0)
		return -EIO;
	drop_note(dcgm);
	return 1;
}

static int pause_alone(struct dcgm *dcgm)
{
	int error;

	if (writer_lives(dcgm->note))
		return -EBUSY;
	(void)unlink(dcgm->note);
	error = write_note(dcgm);
	if (error < 0)
		return error;
	error = run(dcgm, "--pause");
	if (error == -ETIME) /* perhaps it is paused */
		return resume(dcgm) < 0 ? -ETIME : -ENODEV;
	if (error < 0)
		drop_note(dcgm);
	return error;
}

/* --- */

int dcgm_pause(struct dcgm *dcgm)
{
	int fd = lock(dcgm), error;

	if (fd < 0)
		return fd;
	error = pause_alone(dcgm);
	(void)close(fd);
	return error;
}

/* ours: what we have paused, though somebody may have removed the note. */
static int resume_what(struct dcgm *dcgm, bool ours)
{
	int ret = 0, fd;

	if (!ours && access(dcgm->note, F_OK) != 0)
		return 0;
	fd = lock(dcgm);
	if (fd < 0)
		return fd;
	if (ours || (access(dcgm->note, F_OK) == 0 && !writer_lives(dcgm->note)))
		ret = resume(dcgm);
	(void)close(fd);
	return ret;
}

int dcgm_resume(struct dcgm *dcgm)
{
	return resume_what(dcgm, dcgm->held_fd >= 0);
}

int dcgm_recover(struct dcgm *dcgm)
{
	return resume_what(dcgm, false);
}
