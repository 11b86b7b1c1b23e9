/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/sampling.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "stacks/sampling/samplereader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGION_BYTES = 256 << 20 };

/* splitmix64, by Steele, Lea and Flood. */
static uint64_t scatter(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

int64_t sampling_round_ns(const struct sampling_plan *plan, uint32_t round)
{
	const int64_t room_ns = MAX(plan->period_ns * 3 / 4, (int64_t)1);

	return plan->begin_ns + (int64_t)round * plan->period_ns +
	       (int64_t)(scatter(round) % (uint64_t)room_ns);
}

/* The child: dies with its parent. Ctrl-C is the caller's: it ends the window for all readers. */
static _noreturn_ void read_in_child(struct sampling_shared *shared, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		samplereader_run(shared);
	_exit(0);
}

static struct sampling_shared *shared_new(const struct sampling_plan *plan, uint32_t pid, int rank)
{
	struct region *region = region_new(REGION_BYTES);
	struct sampling_shared *shared =
		region != NULL ? region_alloc(region, sizeof(*shared)) : NULL;
	struct sampled_moment *moments =
		shared != NULL ? region_alloc(region, plan->round_cnt * sizeof(*moments)) : NULL;

	if (moments == NULL)
		return region_free(region), NULL;
	shared->plan = *plan;
	shared->region = region;
	shared->rank = (struct sampled_rank){
		.rank = rank,
		.pid = pid,
		.moments = moments,
		.error = shared->error,
		.command = shared->command,
	};
	return shared;
}

int sampling_begin(struct sampling *ret, const struct sampling_plan *plan, uint32_t pid, int rank)
{
	struct sampling_shared *shared = shared_new(plan, pid, rank);
	const pid_t parent = getpid();
	int ends[2], error;
	pid_t child;

	if (shared == NULL)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		error = -errno;
		(void)region_free(shared->region);
		return error;
	}
	child = fork();
	if (child == 0)
		read_in_child(shared, parent);
	error = -errno;
	(void)close(ends[1]);
	if (child < 0) {
		(void)close(ends[0]);
		(void)region_free(shared->region);
		return error;
	}
	*ret = (struct sampling){ shared, child, ends[0] };
	return 0;
}

void sampling_stop(struct sampling *sampling)
{
	atomic_store_explicit(&sampling->shared->stop, true, memory_order_relaxed);
}

static bool await_end(const struct sampling *sampling, int64_t limit_ns)
{
	struct pollfd end = { .fd = sampling->end, .events = POLLIN };
	int64_t left_ns;

	while ((left_ns = limit_ns - clock_mono_ns()) > 0) {
		const int got = poll(&end, 1, (int)MIN(left_ns / NSEC_PER_MSEC, (int64_t)1000) + 1);

		if (got > 0)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
	}
	return false;
}

const struct sampled_rank *sampling_finish(struct sampling *sampling, int64_t limit_ns)
{
	struct sampling_shared *shared = sampling->shared;
	int status = 0, progress;

	if (!await_end(sampling, limit_ns))
		(void)subprocess_signal(sampling->child, SIGKILL);
	while (waitpid(sampling->child, &status, 0) < 0 && errno == EINTR)
		;
	sampling->child = 0;
	progress = atomic_load_explicit(&shared->progress, memory_order_acquire);
	/* Stacks without names say nothing. */
	if (progress != SAMPLING_DONE && shared->error[0] == '\0')
		(void)snprintf(
			shared->error, sizeof(shared->error),
			"process %u: its reader was ended by signal %d while it %s; try again",
			shared->rank.pid, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			progress == SAMPLING_BEGUN   ? "looked for Python"
			: progress == SAMPLING_READS ? "sampled"
						     : "looked for names");
	if (progress == SAMPLING_DONE)
		shared->rank.moment_cnt =
			atomic_load_explicit(&shared->moment_cnt, memory_order_acquire);
	return &shared->rank;
}

void sampling_done(struct sampling *sampling)
{
	if (sampling->shared == NULL)
		return;
	if (sampling->child > 0) {
		(void)subprocess_signal(sampling->child, SIGKILL);
		while (waitpid(sampling->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(sampling->end);
	(void)region_free(sampling->shared->region);
	sampling->shared = NULL;
}
