/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of one worker: at every moment the executions of the
 * highest class that runs, else what the training thread does, else idle.
 * The stretches touch and cover the window, so shares add up to all of it.
 * Source: PerfTracker section 4.2, figure 9, eq. 2 and 3; design.md section 5.
 */
#pragma once

#include "summarize/hostpath.h"

/* One execution on a device, or a collective on any thread. */
struct crit_exec {
	int64_t start_ns, end_ns; /* clipped to the window */
	uint32_t node;
	uint32_t event;
	uint8_t class;
	int64_t critical_ns; /* out: how long it was on the critical path */
};

typedef VEC(struct crit_exec) crit_execs;

/* One stretch of the critical path. */
struct crit_segment {
	int64_t start_ns, end_ns;
	uint32_t node; /* one of the functions that held it: the longest running */
	uint8_t class;
};

typedef VEC(struct crit_segment) crit_segments;

/* Time of one function (node, class) on the path. */
struct crit_time {
	uint32_t node;
	uint8_t class;
	int64_t critical_ns; /* union of its stretches: beta * window (eq. 2) */
	int64_t share_ns;    /* divided among functions that ran at once */
};

typedef VEC(struct crit_time) crit_times;

struct critpath {
	crit_segments segments; /* in time order */
	crit_times times;	/* in order of first appearance */
	int64_t class_ns[CLASS_CNT];
};

/*
 * execs[exec_cnt] sorted by start; host: touching stretches that cover the
 * window (hostpath_walk). Sets critical_ns of each exec. Returns 0 or -ENOMEM;
 * on success ret must be freed by critpath_done(). O(n log n) with few
 * executions at once.
 */
_must_check_ int critpath_find(struct crit_exec *execs, size_t exec_cnt, const host_segments *host,
			       struct critpath *ret);
void critpath_done(struct critpath *path);

/*
 * Puts the autograd thread's executions in the place of the training thread's
 * waiting: out gets stretches that cover what training covers. Returns 0 or
 * -ENOMEM.
 */
_must_check_ int critpath_stand_in(const host_segments *training, const host_segments *backward,
				   host_segments *out);
