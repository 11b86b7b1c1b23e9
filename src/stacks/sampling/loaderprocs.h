/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker processes of a DataLoader, read from outside while the training thread waits for them:
 * the Python stack of a worker that makes a batch. A forked worker has its interpreter and its main
 * thread's state where the parent has them; another one is opened as any process is.
 */
#pragma once

#include "stacks/sampling/uniquestacks.h"

enum { LOADERPROCS_MAX = 16 };

struct loaderproc {
	uint32_t pid;
	int proc;
	bool alive, tried, usable;
	struct modules modules; /* of a worker that was not forked */
	struct pytarget target;
	uintptr_t tstate;
};

struct loaderprocs {
	struct loaderproc list[LOADERPROCS_MAX];
	size_t cnt, turn;
};

void loaderprocs_done(struct loaderprocs *children);

/* Whether a stack has a frame in which the training thread waits for its loader. */
bool loaderprocs_waits(struct pytarget *target, struct region *region, const struct task *task);

/*
 * The stack of a child that makes a batch: another child's each time. parent: the training process
 * and its interpreter. SAMPLED_NONE: none does, or none can be read.
 */
uint32_t loaderprocs_sample(struct loaderprocs *children, int parent_proc, uint32_t parent_pid,
			    const struct pytarget *parent, uintptr_t parent_tstate,
			    struct uniquestacks *unique, struct region *region);
