/* SPDX-License-Identifier: Apache-2.0 */
/* A thread while it is read: what the kernel says of it, and the two stacks before they are joined. */
#pragma once

#include "base/vec.h"
#include "stacks/native/unwind.h"
#include "stacks/proc/taskfiles.h"
#include "stacks/pytarget.h"
#include "stacks/stopper.h"

struct task {
	struct stacks_thread *thread; /* in the region */
	int proc;		      /* the descriptor of /proc/PID; borrowed */
	struct taskfiles_syscall call;

	VEC(uintptr_t) pcs; /* native, innermost first */
	enum unwind_end end;
	bool wants_stop;
	const char *refused; /* why it was not stopped; NULL */

	uintptr_t tstate; /* 0: it runs no Python */
	bool python_done, python_cut;
	VEC(uintptr_t) codes; /* Python, innermost first */
	VEC(struct pywalk_place) places;
};

typedef VEC(struct task) task_vec;

/*
 * Reads the files of a thread: proc is /proc/PID. Returns 0, -ENOENT if it has ended, or -errno.
 */
_must_check_ int task_open(struct task *task, int proc, uint32_t tid, struct stacks_thread *thread);
void task_done(struct task *task);

/*
 * Without stopping it: the stacks of a thread that is blocked, if it was in the same system call
 * before and after. Sets wants_stop and, for a Python thread, python_done.
 */
void task_read_blocked(struct task *task, struct unwinder *unwinder, const struct pytarget *python);

/* From what the stopper copied. */
void task_unwind_stopped(struct task *task, struct unwinder *unwinder, struct stop_thread *stopped);

/* The Python stack of a thread that is stopped. */
void task_walk_python(struct task *task, const struct pytarget *target);

/* Of one that may run: reads until two readings agree, three times at most. */
void task_walk_python_twice(struct task *task, const struct pytarget *target);

/* The kernel's part of the stack, where permitted, and the function in which it sleeps. */
void task_read_kernel(struct task *task, struct region *region);

/* Joins the stacks into thread->frames. Returns 0 or -ENOMEM. */
struct resolver;
_must_check_ int task_join(struct task *task, struct pytarget *target,
			   const struct resolver *resolver, struct region *region);
