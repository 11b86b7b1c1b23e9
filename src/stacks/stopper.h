/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers and stacks of threads that have to be stopped for that: those that run, and those of
 * which the kernel's files do not tell enough. PTRACE_SEIZE and PTRACE_INTERRUPT send no signal and
 * leave a thread that was stopped as it was. Each thread is let go as soon as it was copied; one
 * that does not stop in time is never waited for. The tracer is a thread of its own: the kernel
 * lets go of all that it traces when it ends, also of those that stop later.
 *
 * A system call that cannot be restarted (epoll_wait, semtimedop) returns EINTR in a thread that was
 * stopped in it, as after SIGSTOP and SIGCONT.
 */
#pragma once

#include "base/vec.h"
#include "stacks/native/modules.h"
#include "stacks/native/registers.h"

enum stop_result {
	STOP_PENDING,
	STOP_DONE,
	STOP_REFUSED, /* not permitted, or traced by another process */
	STOP_LATE,    /* it did not stop within the limit */
	STOP_GONE,    /* it ended */
};

struct stop_thread {
	pid_t tid;
	size_t tag; /* the caller's */
	enum stop_result result;
	int error; /* STOP_REFUSED: an errno */
	struct registers registers;
	struct stackcopy stack;
	int64_t begin_ns, stopped_ns; /* from the request until it was let go */
};

struct stopper {
	const struct modules *modules;
	struct stop_thread *threads;
	size_t cnt;
	int64_t limit_ns; /* for all together */
	/* For threads that are still runnable then: on a busy machine they wait for a CPU. */
	int64_t busy_limit_ns;
	/* Called while the thread is stopped; may be NULL. */
	void (*visit)(void *context, const struct stop_thread *thread);
	void *context;
};

/* Fills the threads. Returns 0 or -errno of the tracer's start. stackcopy_done on each stack. */
_must_check_ int stopper_run(struct stopper *stopper);
