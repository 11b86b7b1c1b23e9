/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of results: the overhead of the collectors, and the summary of a report.
 */
#pragma once

#include "base/base.h"

/* Slices to measure overhead with: see format/shared/block.h. slice_cnt 0: ends or cancels them. */
struct wire_slices {
	uint64_t id, start_step, slice_steps, slice_cnt;
	uint32_t kind, stride;
};

#define WIRE_PAIRS_MAX 32u /* SLICES_PAIRS_MAX */

/* pairs: logarithms of on / off (detect/slices.h); NAN: not complete. */
struct wire_slices_cost {
	uint32_t worker, pair_cnt;
	uint64_t id;
	double switching_ns; /* what the switches cost in all */
	double pairs[WIRE_PAIRS_MAX];
};

/* A share of an iteration's time. pair_cnt 0: too few pairs for an interval, or none yet. */
struct wire_cost {
	double frac, low_frac, high_frac; /* the interval contains the cost in 95 of 100 jobs */
	uint32_t pair_cnt, reserved;
};

/* The measurements themselves, as a part of the job's time. */
struct wire_audits {
	uint32_t cnt, reserved;
	int64_t total_ns; /* their slices, on and off */
	int64_t job_ns;	  /* the time in which they were made */
	/* what they cost: collectors of a window in half of their slices, and the switches */
	double cost_frac, high_frac; /* of the job's time; high: by the upper bounds */
};

struct wire_overhead {
	struct wire_cost effect; /* always, and the audits */
	struct wire_cost always, window;
	struct wire_audits audits;
	uint32_t backoff, reserved; /* bits of enum backoff */
};

#define WIRE_FINDING_RANKS 16u
#define WIRE_REPORT_FINDINGS 16u

struct wire_finding {
	char cause[40];	 /* as in the report; ends with NUL */
	int64_t gain_ns; /* per iteration */
	uint32_t rank_cnt, reserved;
	int32_t ranks[WIRE_FINDING_RANKS]; /* the first of them */
};

/* Findings by gain, the largest first; there may be more than are listed. */
struct wire_report {
	uint64_t number;  /* in the names of its files */
	char reason[400]; /* one sentence; ends with NUL */
	uint32_t verdict; /* enum verdict */
	uint32_t finding_cnt;
	struct wire_finding findings[WIRE_REPORT_FINDINGS];
};
