/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gpuwatch_feed.h"

#include "base/clock.h"
#include "serve/gpuwatch_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WISH_AGAIN_NS (1 * NSEC_PER_SEC)

void gpufeed_init(const struct gpufeed_setup *setup, struct gpufeed *ret)
{
	*ret = (struct gpufeed){ .setup = *setup, .stop_fd = -1 };
}

/* stdin of the process is what tells it to end. */
static int spawn(const char *program, const char *dir, int stop_fd, pid_t *ret)
{
	char *const argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "gpu-sampler",
			       (char *)(uintptr_t) "--window", (char *)(uintptr_t)dir, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_adddup2(&files, stop_fd, STDIN_FILENO);
	(void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	error = posix_spawn(ret, program, &files, &attributes, argv, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return -error;
}

static int start_sampler(struct gpufeed *feed)
{
	int fds[2], error;

	gpufeed_mind(feed);
	if (feed->pid > 0)
		return -EBUSY;
	if (feed->stuck)
		return -ENODEV;
	if (mkdir(feed->setup.dir, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	error = spawn(feed->setup.program, feed->setup.dir, fds[0], &feed->pid);
	(void)close(fds[0]);
	if (error < 0) {
		(void)close(fds[1]);
		feed->pid = 0;
		return error;
	}
	feed->stop_fd = fds[1];
	feed->started++;
	return 0;
}

int gpufeed_begin(struct gpufeed *feed)
{
	int error = -ENOENT;

	if (feed->open)
		return 0;
	gpushare_open(feed->setup.dir, clock_wall_ns(), &feed->reader);
	if (feed->setup.shared)
		error = 0;
	else if (feed->setup.program != NULL)
		error = start_sampler(feed);
	feed->open = error == 0;
	feed->wished_ns = 0;
	return error;
}

int gpufeed_read(struct gpufeed *feed, void (*take)(void *arg, const struct sidecar *), void *arg)
{
	int64_t now_ns = clock_mono_ns();

	if (!feed->open)
		return 0;
	if (feed->setup.shared && now_ns - feed->wished_ns >= WISH_AGAIN_NS) {
		(void)gpushare_wish(&feed->reader);
		feed->wished_ns = now_ns;
	}
	return gpushare_read(&feed->reader, take, arg);
}

void gpufeed_end(struct gpufeed *feed)
{
	if (!feed->open)
		return;
	feed->open = false;
	gpushare_close(&feed->reader);
	if (feed->stop_fd >= 0)
		(void)close(feed->stop_fd);
	feed->stop_fd = -1;
}

void gpufeed_mind(struct gpufeed *feed)
{
	int status;

	if (feed->pid <= 0 || waitpid(feed->pid, &status, WNOHANG) != feed->pid)
		return;
	feed->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == GPUSAMPLER_CRASHED)
		feed->crashed++;
	else
		feed->hung += WEXITSTATUS(status) == GPUSAMPLER_HUNG ||
			      WEXITSTATUS(status) == GPUSAMPLER_STUCK;
	feed->stuck |= WIFEXITED(status) && WEXITSTATUS(status) == GPUSAMPLER_STUCK;
}
