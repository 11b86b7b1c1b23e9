/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message that hostd publishes for each of its workers once one is blocked: the worker's
 * stack and the latest collective of each of its process groups. The hub checks it.
 */
#pragma once

#include "base/base.h"
#include "live/link/wire.h"

#include <string.h>

#define WIRE_GROUPS 16u

/* The latest collective of a process group that a worker has entered. Texts end with NUL. */
struct wire_entered {
	int64_t time_ns, number; /* as torch or NCCL counts them in the group */
	uint32_t size;		 /* of the group; 0 unknown */
	uint32_t by_name;	 /* 1: each name has a counter of its own, as in NCCL */
	char group[36], name[24];
};

/* One worker, see live/hostd/blocked_stacks.h. Unknown texts are empty; all end with NUL. */
struct wire_where {
	uint32_t worker, entered_cnt;
	uint64_t step; /* as in wire_state */
	struct wire_entered entered[WIRE_GROUPS];
	char stack[WIRE_TEXT]; /* functions, the innermost last; '\n' between them */
	char leaf[64];	       /* what the innermost function waits for: a system call, the GIL */
	char children[500];    /* while it waits for its loader: where the loader's children are */
};

/* Whether all counts are in range and all texts end with NUL. */
static inline bool wire_where_valid(const struct wire_where *where)
{
	if (where->entered_cnt > WIRE_GROUPS ||
	    memchr(where->stack, '\0', sizeof(where->stack)) == NULL ||
	    memchr(where->leaf, '\0', sizeof(where->leaf)) == NULL ||
	    memchr(where->children, '\0', sizeof(where->children)) == NULL)
		return false;
	for (uint32_t i = 0; i < where->entered_cnt; i++) {
		const struct wire_entered *entered = &where->entered[i];

		if (memchr(entered->group, '\0', sizeof(entered->group)) == NULL ||
		    memchr(entered->name, '\0', sizeof(entered->name)) == NULL)
			return false;
	}
	return true;
}
