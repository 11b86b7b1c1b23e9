/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of all threads of a worker of a job that hangs, and of its children, read from outside by
 * `perftracker stacks` in a process of its own: twice, some seconds apart, bounded in time. What they
 * show goes to the hub in struct wire_where; all of it stays in OUT/stacks/rankN.json.
 */
#pragma once

#include "base/vec.h"
#include "live/hostd/pool.h"
#include "live/link/wire_hang.h"

struct hostd;

/* A worker whose stacks are being read, and what the hub will be sent then. */
struct hangstacks_reading {
	struct wire_where where;
	uint32_t pid;
	int rank;
	char path[4200];
};

struct hangstacks {
	struct pool *pool; /* of readers */
	VEC(struct hangstacks_reading *) readings;
	int64_t begun_ns; /* the latest blocked_stacks_publish() that read */
};

/*
 * Starts to read; the hub gets `where` completed when that is over. Returns 0; -EALREADY: it is under
 * way; another -errno: it can't be read.
 */
_must_check_ int hangstacks_begin(struct hostd *hostd, uint32_t pid, int rank,
				  const struct wire_where *where);

/* pool_done: a reader has ended. */
void hangstacks_done(void *arg, uint64_t id, int status, const char *text);
