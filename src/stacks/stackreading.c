/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/stackreading.h"

#include "base/clock.h"
#include "stacks/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGION_BYTES = 64 << 20, GRACE_MS = 1000 };

/* The child: dies with its parent, and by itself after the limit. */
static _noreturn_ void read_in_child(struct stackreading_shared *shared, pid_t parent)
{
	const struct itimerval limit = {
		.it_value = { .tv_sec = STACKS_LIMIT_MS / 1000 },
	};
	sigset_t none;

	(void)sigemptyset(&none);
	(void)signal(SIGALRM, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setitimer(ITIMER_REAL, &limit, NULL);
	if (getppid() == parent)
		capture_run(shared);
	_exit(0);
}

static struct stackreading_shared *shared_new(uint32_t pid)
{
	struct region *region = region_new(REGION_BYTES);
	struct stackreading_shared *shared =
		region != NULL ? region_alloc(region, sizeof(*shared)) : NULL;

	if (shared == NULL)
		return NULL;
	shared->region = region;
	shared->process.pid = pid;
	shared->process.rank = -1;
	return shared;
}

int stackreading_begin(struct stackreading *ret, uint32_t pid)
{
	struct stackreading_shared *shared = shared_new(pid);
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
	/* Only the child holds that end now: the other one tells when it ends. */
	(void)close(ends[1]);
	if (child < 0) {
		(void)close(ends[0]);
		(void)region_free(shared->region);
		return error;
	}
	*ret = (struct stackreading){ shared, child, ends[0], clock_mono_ns() };
	return 0;
}

/* status: of waitpid(), -1 if the child does not end. */
static void explain_end(struct stackreading_shared *shared, int status)
{
	static const char *const STEPS[] = {
		[STACKS_BEGUN] = "its identity",
		[STACKS_KNOWN] = "its list of threads",
		[STACKS_LISTED] = "its memory and stacks",
	};
	const int progress = atomic_load_explicit(&shared->progress, memory_order_acquire);
	struct stacks_process *process = &shared->process;

	if (progress == STACKS_DONE || process->error[0] != '\0')
		return;
	if (status == -1 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
		(void)snprintf(process->error, sizeof(process->error),
			       "process %u: reading %s took more than %d s and was given up; look "
			       "at /proc/%u/wchan and at its file systems",
			       process->pid, STEPS[progress], STACKS_LIMIT_MS / 1000, process->pid);
	else
		(void)snprintf(process->error, sizeof(process->error),
			       "process %u: the reader was ended by signal %d while it read %s",
			       process->pid, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			       STEPS[progress]);
}

/* Whether the child has ended in time. One that waits for a dead file system never does. */
static bool await_end(const struct stackreading *reading)
{
	const int64_t until_ns = reading->begin_ns + (STACKS_LIMIT_MS + GRACE_MS) * NSEC_PER_MSEC;
	struct pollfd end = { .fd = reading->end, .events = POLLIN };
	int64_t left_ns;

	while ((left_ns = until_ns - clock_mono_ns()) > 0) {
		const int got = poll(&end, 1, (int)(left_ns / NSEC_PER_MSEC) + 1);

		if (got > 0)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
	}
	return false;
}

const struct stacks_process *stackreading_finish(struct stackreading *reading)
{
	int status = -1;

	if (await_end(reading))
		while (waitpid(reading->child, &status, 0) < 0 && errno == EINTR)
			;
	reading->child = 0;
	explain_end(reading->shared, status);
	return &reading->shared->process;
}

void stackreading_done(struct stackreading *reading)
{
	if (reading->shared == NULL)
		return;
	(void)close(reading->end);
	(void)region_free(reading->shared->region);
	reading->shared = NULL;
}
