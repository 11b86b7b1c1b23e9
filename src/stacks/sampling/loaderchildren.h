/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker processes of a DataLoader, read from outside while the training thread waits for them:
 * the Python stack of a worker that makes a batch. A forked worker has its interpreter and its main
 * thread's state where the parent has them; another one is opened as any process is.
 */
#pragma once

#include "stacks/sampling/uniquestacks.h"

enum { LOADERCHILDREN_MAX = 16 };

struct loaderchild {
	uint32_t pid;
	int proc;
	bool alive, tried, usable;
	struct modules modules; /* of a worker that was not forked */
	struct pytarget target;
	uintptr_t tstate;
};

struct loaderchildren {
	struct loaderchild list[LOADERCHILDREN_MAX];
	size_t cnt, turn;
};

void loaderchildren_done(struct loaderchildren *children);

/* Whether a stack has a frame in which the training thread waits for its loader. */
bool loaderchildren_waits(struct pytarget *target, struct region *region, const struct task *task);

/*
 * The stack of a child that makes a batch: another child's each time. parent: the training process
 * and its interpreter. SAMPLED_NONE: none does, or none can be read.
 */
uint32_t loaderchildren_sample(struct loaderchildren *children, int parent_proc,
			       uint32_t parent_pid, const struct pytarget *parent,
			       uintptr_t parent_tstate, struct uniquestacks *unique,
			       struct region *region);
