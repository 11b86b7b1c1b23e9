/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of one worker: at every moment the executions of the
 * highest class that runs, else what the training thread does, else idle.
 * The stretches touch and cover the window, so shares add up to all of it.
 * Source: PerfTracker section 4.2, figure 9, eq. 2 and 3.
 */
#pragma once

#include "summarize/hostpath.h"
#include "summarize/nodemap.h"

/* One execution on a device, or a collective on any thread. */
struct crit_exec {
	int64_t start_ns, end_ns; /* clipped to the window */
	uint32_t node;
	uint32_t event;
	uint8_t class;
	/* out: how long it was on the critical path. A window is no longer than a year. */
	int64_t critical_ns : 56;
};
_Static_assert(sizeof(struct crit_exec) == 32, "there is one for each kernel");

typedef VEC(struct crit_exec) crit_execs;

/* One stretch of the critical path. */
struct crit_segment {
	int64_t start_ns, end_ns;
	uint32_t node; /* one of the functions that held it: the longest running */
	uint8_t class;
};

/* Time of one function (node, class) on the path, and on the threads whether hidden or not. */
struct crit_time {
	uint32_t node;
	uint8_t class;
	int64_t critical_ns; /* union of its stretches: beta * window (eq. 2) */
	int64_t share_ns;    /* divided among functions that ran at once */
	int64_t thread_ns;   /* of the host's stretches */
};

typedef VEC(struct crit_time) crit_times;

struct critpath {
	crit_times times; /* in order of first appearance */
	int64_t class_ns[CLASS_CNT];
};

/* Who else wants the stretches, in time order: each returns 0 or -errno. May be NULL. */
struct crit_sink {
	void *to;
	int (*path)(void *to, const struct crit_segment *seg);
	int (*host)(void *to, const struct host_segment *seg);
};

/*
 * execs[exec_cnt] sorted by start; host: touching stretches that cover the window. Sets
 * critical_ns of each exec. Returns 0, -ENOMEM or what host or a sink returned; on success
 * ret must be freed by critpath_done(). O(n log n) with few executions at once. Nothing is
 * kept but the times. ret may be NULL when only the sink is of interest: then execs stay as
 * they are.
 */
_must_check_ int critpath_find(struct crit_exec *execs, size_t exec_cnt, struct host_source host,
			       struct crit_sink sink, struct critpath *ret);
void critpath_done(struct critpath *path);

/*
 * Puts the autograd thread's executions in the place of the training thread's waiting: its
 * source gives stretches that cover what training covers. Both sources stay the caller's.
 */
struct stand_in {
	struct host_source training, backward;
	struct host_segment wait; /* of training, while it is being filled */
	struct host_segment next; /* of backward: the first that ends behind the last asked about */
	bool have_wait, have_next;
};

struct host_source stand_in_source(struct stand_in *stand_in);
