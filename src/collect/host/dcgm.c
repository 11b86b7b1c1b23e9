/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/host/dcgm.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "collect/host/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

/* --- the note: "PID START\n", START as /proc/PID/stat has it --- */

static int write_text(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error;

	if (fd < 0)
		return -errno;
	error = file_write_all(fd, text, len);
	return close(fd) != 0 && error == 0 ? -errno : error;
}

/* It is there with its text or not at all: nobody can lock out a crash. */
static int write_note(const struct dcgm *dcgm)
{
	char unfinished[PATH_MAX], text[NOTE_BYTES];
	struct procfs_stat stat;
	int error = procfs_read_stat("", (uint32_t)dcgm->owner, 0, &stat), len;

	if (error < 0)
		return error;
	if (snprintf(unfinished, sizeof(unfinished), "%s.%d", dcgm->note, (int)getpid()) >=
	    (int)sizeof(unfinished))
		return -ENAMETOOLONG;
	len = snprintf(text, sizeof(text), "%d %" PRIu64 "\n", (int)dcgm->owner, stat.start);
	(void)unlink(unfinished); /* of a dead process with our number */
	error = write_text(unfinished, text, (size_t)len);
	if (error == 0 && link(unfinished, dcgm->note) != 0)
		error = -errno;
	(void)unlink(unfinished);
	return error;
}

/* Who wrote it, if that one lives. What cannot be read was not written to its end: 0. */
static pid_t living_writer(const char *note)
{
	int fd = open(note, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[NOTE_BYTES] = "", *end;
	struct procfs_stat stat;
	unsigned long pid;
	ssize_t len;

	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	pid = strtoul(text, &end, 10);
	if (len > 0 && pid > 0 && pid <= INT32_MAX && *end == ' ' &&
	    procfs_read_stat("", (uint32_t)pid, 0, &stat) == 0 && stat.state != 'Z' &&
	    stat.start == strtoull(end, NULL, 10))
		return (pid_t)pid;
	return 0;
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

static int resume(const struct dcgm *dcgm)
{
	if (run(dcgm, "--resume") < 0)
		return -EIO;
	(void)unlink(dcgm->note);
	return 1;
}

static int pause_alone(const struct dcgm *dcgm)
{
	int error;

	if (living_writer(dcgm->note) != 0)
		return -EBUSY;
	(void)unlink(dcgm->note);
	error = write_note(dcgm);
	if (error < 0)
		return error;
	error = run(dcgm, "--pause");
	if (error == -ETIME) /* perhaps it is paused */
		return resume(dcgm) < 0 ? -ETIME : -ENODEV;
	if (error < 0)
		(void)unlink(dcgm->note);
	return error;
}

/* --- */

int dcgm_pause(const struct dcgm *dcgm)
{
	int fd = lock(dcgm), error;

	if (fd < 0)
		return fd;
	error = pause_alone(dcgm);
	(void)close(fd);
	return error;
}

/* mine: whose pause is taken back though he lives; 0: nobody's. */
static int resume_of(const struct dcgm *dcgm, pid_t mine)
{
	int ret = 0, fd;
	pid_t writer;

	if (access(dcgm->note, F_OK) != 0)
		return 0;
	fd = lock(dcgm);
	if (fd < 0)
		return fd;
	writer = living_writer(dcgm->note);
	if (access(dcgm->note, F_OK) == 0 && (writer == 0 || writer == mine))
		ret = resume(dcgm);
	(void)close(fd);
	return ret;
}

int dcgm_resume(const struct dcgm *dcgm)
{
	return resume_of(dcgm, dcgm->owner);
}

int dcgm_recover(const struct dcgm *dcgm)
{
	return resume_of(dcgm, 0);
}
