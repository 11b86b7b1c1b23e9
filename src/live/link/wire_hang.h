/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message that hostd publishes for each of its workers once one is blocked: the worker's
 * stack and the latest collective of each of its process groups. The hub checks it.
 */
#pragma once

#include "base/base.h"
#include "live/link/wire.h"
#include "model/place/awaited.h"

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
	char awaited[500];     /* where those are that it waits for */
	uint32_t awaited_by;   /* enum awaited_by */
	char ended[500];       /* where a thread of the process was that has ended shortly before */
	int64_t ended_ago_ns;
	/* Once its stacks were read from outside, hang/stackfacts.h: */
	uint32_t read;		/* 1: they were, or could not be */
	uint32_t shown;		/* enum hang_fact */
	uint32_t in_collective; /* 1: it is in a collective */
	char says[320];		/* what it waits for */
	char child[256];	/* where a worker of its loader is */
};

/* Whether all counts are in range and all texts end with NUL. */
static inline bool wire_where_valid(const struct wire_where *where)
{
	if (where->entered_cnt > WIRE_GROUPS ||
	    memchr(where->stack, '\0', sizeof(where->stack)) == NULL ||
	    memchr(where->leaf, '\0', sizeof(where->leaf)) == NULL ||
	    memchr(where->awaited, '\0', sizeof(where->awaited)) == NULL ||
	    memchr(where->ended, '\0', sizeof(where->ended)) == NULL ||
	    memchr(where->says, '\0', sizeof(where->says)) == NULL ||
	    memchr(where->child, '\0', sizeof(where->child)) == NULL ||
	    where->awaited_by >= AWAITED_BY_CNT)
		return false;
	for (uint32_t i = 0; i < where->entered_cnt; i++) {
		const struct wire_entered *entered = &where->entered[i];

		if (memchr(entered->group, '\0', sizeof(entered->group)) == NULL ||
		    memchr(entered->name, '\0', sizeof(entered->name)) == NULL)
			return false;
	}
	return true;
}
