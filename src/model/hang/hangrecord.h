/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of one rank of a job in which no iteration ends any more: its process, its marks,
 * its collectives and its stacks. Input of the stage `hang`; made by `live` for a running job and by
 * `read` from files. Every field may be unknown: texts "" and pointers NULL.
 */
#pragma once

#include "model/place/awaited.h"
#include "model/stackdump.h"

/* Whether iterations end. */
enum hang_life {
	HANG_BLOCKED, /* none ends, or nothing is known */
	HANG_RUNNING, /* they go on */
	HANG_GONE,    /* its process has ended or closed its connection */
};

/* The latest mark within the iteration. */
enum hang_mark {
	HANG_MARK_NONE, /* none, or another one */
	HANG_MARK_LOADER,
	HANG_MARK_BATCH,
	HANG_MARK_BACKWARD,
	HANG_MARK_OPTIMIZER,
	HANG_MARK_STEP,
};

enum { HANG_ENTERED_MAX = 256 };

/* Whether a device has begun a collective; dumps without times do not say. */
enum hang_begun { HANG_WORK_UNKNOWN, HANG_WORK_QUEUED, HANG_WORK_BEGUN };

/* The latest collective of a process group that the rank has entered, and its first open one. */
struct hang_entered {
	const char *group; /* as all members name it */
	const char *name;  /* "all_reduce" */
	int64_t number;	   /* as torch or NCCL counts them in the group */
	bool by_name;	   /* each name has a counter of its own, as in NCCL */
	bool ended;	   /* it is known to be over */
	bool p2p;	   /* a send or receive: numbered per pair of ranks */
	uint32_t size;	   /* of the group; 0 unknown */
	uint64_t elements; /* of its first input; 0 unknown */
	int64_t time_ns;
	const char *members;   /* ranks as torch writes them, "[0, 4]"; "" unknown */
	const char *caller;    /* the user's function that called it; "" unknown */
	int64_t last_finished; /* number of the group's latest that is over; -1 unknown */
	const char *open_name; /* the first that is open; NULL: none, or not recorded */
	int64_t open;	       /* its number */
	int64_t open_ns;       /* when it was launched */
	enum hang_begun open_begun;
	uint64_t open_elements;
	int open_from, open_to; /* of a send or receive: ranks of the job; equal: unknown */
};

struct hang_record {
	int rank, world_size; /* world_size 0: unknown */
	uint32_t pid;
	const char *host, *source; /* source: a file, or "live" */
	enum hang_life life;
	char process;		/* state of the process as /proc says, 'X' gone; '\0' unknown */
	bool bye;		/* its program ended by itself */
	bool exit_known;	/* exit_status is that of waitpid() */
	bool killed_for_memory; /* the kernel or its cgroup says so */
	bool launcher_gone;	/* the process that started it has ended */
	int exit_status;

	bool marks_known;
	enum hang_mark mark;
	uint64_t step;	   /* marks of iterations so far */
	int64_t silent_ns; /* since the latest mark; 0 unknown */
	int64_t quiet_ns;  /* since its latest collective, at most; 0 unknown */
	bool absent;	   /* it has left no dump, groups of others name it */

	const char *stack; /* functions of the training thread, the innermost last, '\n' between */
	const char *leaf;  /* what the innermost waits for: a system call, the GIL */
	const char *awaited; /* where those are that it waits for */
	enum awaited_by by;  /* whose place that is */
	const char *ended;   /* where a thread of the process was that ended shortly before */
	int64_t ended_ago_ns;

	const struct hang_entered *entered; /* one per group */
	size_t entered_cnt;
	/* What its stacks showed to hostd, as in hang/stackfacts.h; used without `stacks`. */
	uint32_t shown; /* enum hang_fact */
	bool in_collective;
	const char *says, *child;
	/* Read from outside, the training thread first. */
	const struct stacks_process *stacks;
	const struct stacks_process *const *children; /* such as the workers of its DataLoader */
	size_t child_cnt;
};
