/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were read at many moments, each kept once: as addresses while the process is sampled,
 * with names at the end. Two stacks are the same if all their frames are at the same instructions.
 */
#pragma once

#include "model/sampled/sampledjob.h"
#include "stacks/native/resolve.h"
#include "stacks/task.h"

enum { UNIQUESTACKS_MAX = 16384 };

struct uniquestacks {
	VEC(struct task) tasks;	      /* the addresses; of stacks that have names already, empty */
	struct sampled_stack *stacks; /* in the region, UNIQUESTACKS_MAX of them */
	struct idmap by_hash;
	size_t refused; /* beyond the limit, or no memory */
};

/* Returns 0 or -ENOMEM; uniquestacks_done in either case. */
_must_check_ int uniquestacks_init(struct uniquestacks *unique, struct region *region);
void uniquestacks_done(struct uniquestacks *unique);

/*
 * The index of the task's stack, SAMPLED_NONE: it has none, or there is no room. salt: of stacks
 * whose addresses are those of another process. A new one takes the task's arrays.
 */
uint32_t uniquestacks_add(struct uniquestacks *unique, struct task *task, uint64_t salt);

/* Whether the index, of a stack just added, has names yet. */
bool uniquestacks_is_named(const struct uniquestacks *unique, uint32_t index);

/*
 * Gives names to one stack of Python frames, or to all that have none yet. Returns 0 or -ENOMEM.
 */
_must_check_ int uniquestacks_name(struct uniquestacks *unique, uint32_t index,
				   struct pytarget *target, struct region *region);
_must_check_ int uniquestacks_name_all(struct uniquestacks *unique, struct pytarget *target,
				       struct resolver *resolver, struct region *region);
