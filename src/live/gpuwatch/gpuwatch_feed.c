/* SPDX-License-Identifier: Apache-2.0 */
#include "live/gpuwatch/gpuwatch_feed.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_AGAIN_NS (1 * NSEC_PER_SEC)

void gpufeed_init(const struct gpufeed_setup *setup, struct gpufeed *ret)
{
	*ret = (struct gpufeed){ .setup = *setup, .stop_fd = -1 };
}

static int start_sampler(struct gpufeed *feed)
{
	const char *const argv[] = { feed->setup.program, "gpu-sampler", "--window",
				     feed->setup.dir, NULL };
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
	/* The process ends when its stdin is closed. */
	error = subprocess_start(
		argv, (const int[3]){ fds[0], SUBPROCESS_NULL, SUBPROCESS_INHERIT }, &feed->pid);
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
	feed->requested_ns = 0;
	return error;
}

int gpufeed_read(struct gpufeed *feed, void (*take)(void *arg, const struct sidecar *), void *arg)
{
	int64_t now_ns = clock_mono_ns();

	if (!feed->open)
		return 0;
	if (feed->setup.shared && now_ns - feed->requested_ns >= REQUEST_AGAIN_NS) {
		(void)gpushare_request(&feed->reader);
		feed->requested_ns = now_ns;
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
	int status, got;

	if (feed->pid <= 0)
		return;
	got = subprocess_reap(feed->pid, &status);
	if (got == 0)
		return;
	if (got < 0) /* reaped elsewhere: its status is unknown */
		status = W_EXITCODE(GPUSAMPLER_CRASHED, 0);
	feed->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == GPUSAMPLER_CRASHED)
		feed->crashed++;
	else
		feed->hung += WEXITSTATUS(status) == GPUSAMPLER_HUNG ||
			      WEXITSTATUS(status) == GPUSAMPLER_STUCK;
	feed->stuck |= WIFEXITED(status) && WEXITSTATUS(status) == GPUSAMPLER_STUCK;
}
