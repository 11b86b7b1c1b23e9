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

struct wire_slices_cost {
	uint32_t worker, pair_cnt; /* pair_cnt 0: too few slices were complete */
	uint64_t id;
	double frac, error_frac; /* share of an iteration's time; one standard error */
};

/* pair_cnt 0: not measured yet. */
struct wire_cost {
	double frac, error_frac;
	uint32_t pair_cnt, reserved;
};

struct wire_overhead {
	struct wire_cost always, window;
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
