/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of one worker: at every moment the running executions of the highest class,
 * else the training thread's function, else idle. The stretches touch and cover the window, so
 * shares add up to the window.
 * Source: PerfTracker section 4.2, figure 9, eq. 2 and 3.
 */
#pragma once

#include "summarize/cct.h"
#include "summarize/hostpath.h"

/* One execution on a device, or a collective on any thread. */
struct crit_exec {
	int64_t start_ns, end_ns; /* clipped to the window */
	uint32_t node;
	uint32_t event;
	uint8_t class;
	/* out: its time on the critical path. 56 bits: a window is at most a year long. */
	int64_t critical_ns : 56;
};
_Static_assert(sizeof(struct crit_exec) == 32, "there is one for each kernel");

typedef VEC(struct crit_exec) crit_execs;

/* One stretch of the critical path. */
struct crit_segment {
	int64_t start_ns, end_ns;
	uint32_t node; /* the function of the path; of several, the longest running */
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

/* Receivers of the stretches, in time order: each returns 0 or -errno. May be NULL. */
struct crit_sink {
	void *to;
	int (*path)(void *to, const struct crit_segment *seg);
	int (*host)(void *to, const struct host_segment *seg);
};

/*
 * execs[exec_cnt] sorted by start; host: touching stretches that cover the window. Sets critical_ns
 * of each exec. Returns 0, -ENOMEM or the error of host or a sink; on success ret must be freed by
 * critpath_done(). O(n log n) with few executions at once. Only the times are stored. ret may be
 * NULL when only the sink is of interest: then execs are not changed.
 */
_must_check_ int critpath_find(struct crit_exec *execs, size_t exec_cnt, struct host_source host,
			       struct crit_sink sink, struct critpath *ret);
void critpath_done(struct critpath *path);

/*
 * Replaces the training thread's waiting stretches by the autograd thread's stretches. backward
 * covers the same time as training. Both sources remain the caller's.
 */
struct stand_in {
	struct host_source training, backward;
	struct host_segment wait; /* the waiting stretch of training being filled */
	struct host_segment next; /* the first stretch of backward that ends after the last
				   * requested time */
	bool have_wait, have_next;
};

struct host_source stand_in_source(struct stand_in *stand_in);
