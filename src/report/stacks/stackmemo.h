/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were met before: most ranks of a large job are in few places, so a stack that equals an earlier
 * one takes that one's path in the tree without making the text of its frames again.
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "model/stackdump.h"

struct stackmemo_entry {
	const struct stacks_thread *thread; /* borrowed */
	uint32_t from, leaf;		    /* nodes of the tree: of the thread's role, innermost */
};

struct stackmemo {
	struct idmap by_hash; /* the first stack with that hash; others are not remembered */
	VEC(struct stackmemo_entry) entries;
};

void stackmemo_done(struct stackmemo *memo);

/* The hash of a thread's frames below a node. O(bytes of names). */
uint64_t stackmemo_hash(const struct stacks_thread *thread, uint32_t from);

/* The leaf of an equal stack below the same node; IDMAP_NONE: none is known. */
uint32_t stackmemo_find(const struct stackmemo *memo, const struct stacks_thread *thread,
			uint32_t from, uint64_t hash);

/* Returns 0 or -ENOMEM. */
_must_check_ int stackmemo_add(struct stackmemo *memo, uint64_t hash,
			       const struct stackmemo_entry *entry);
