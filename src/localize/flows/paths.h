/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths between the hosts of a job: what one worker sends over TCP to one address of another host. A
 * ring sends as much over each of its paths, at the pace of the slowest; but the kernel counts the time
 * with data on the way, so the rate of each path is known while it is used. The slow path is used
 * nearly always, the others by turns.
 * Source: PerfTracker section 3, figures 3-5.
 */
#pragma once

#include "localize/past.h"

struct path {
	uint32_t worker;
	uint32_t from, to; /* hosts, as job_worker.host; they differ */
	const struct fp_flow *flow;
	double rate;	/* bytes per ns while data is on the way and the receiver has room */
	double busy_ns; /* per iteration, the mean of its sockets: that time */
	double before;	/* the rate in the job's past; 0 unknown */
	double usual;	/* what the path is compared with: its past, else the others; 0: nothing */
	double lost_ns; /* per iteration: what it takes longer than at the usual rate; 0: it is not slow */
};

struct paths {
	VEC(struct path) list; /* those that carry much of what is sent between hosts */
	uint32_t host_cnt;     /* hosts that one of them begins or ends at */
	bool by_past;	       /* all slow ones are slower than they were */
};

/* Finds the paths and which of them are slow. Returns 0 or -ENOMEM; paths_done() is fine after either. */
_must_check_ int paths_find(const struct job *job, const struct past *past, struct paths *ret);
void paths_done(struct paths *paths);

static inline bool path_touches(const struct path *path, uint32_t host)
{
	return path->from == host || path->to == host;
}
