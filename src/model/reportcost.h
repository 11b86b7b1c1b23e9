/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PerfTracker itself costs a live job, for the report: the effect on iterations, as measured
 * with and without the collectors, and the CPU time of its threads.
 */
#pragma once

#include "model/ownthread.h"

/* Live only: overhead of the collectors, measured by the overhead check. */
struct report_cost {
	uint32_t pair_cnt;	       /* of iterations with and without; 0: not measured */
	double pct, low_pct, high_pct; /* of an iteration's time; the 95 % interval */
};

/* The measurements themselves: how often they came and what they cost. */
struct report_audits {
	uint32_t cnt;
	double total_s, job_s; /* their length; the time in which they were made */
	double cost_pct;       /* of job_s */
};

struct report_overhead {
	bool present;
	bool torch;		   /* torch.profiler recorded the window; its overhead is unknown */
	struct report_cost effect; /* always, with the audits' own cost */
	struct report_cost always, window;
	struct report_audits audits;
	struct own_cpu own;
	bool less_samples, no_operators; /* left out of windows because of their overhead */
	bool no_collectives, only_marks; /* likewise between windows; all but marks */
};
