/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of one run in a few numbers: the median of its healthy stretches, and between which
 * times nine of ten of its iterations were. Stretches in which the job was known to be slow are
 * left out, so that a run with a fault in its middle is still worth a comparison.
 * The rows are those of the store's pace, or the same made by the hub of a job that runs.
 */
#pragma once

#include "base/base.h"
#include "base/vec.h"

#define RUNPACE_ROWS_MAX 8192u /* then neighbors become one row */
#define RUNPACE_ROWS_MIN 5u    /* fewer rows are a pace if they stand for enough times: */
#define RUNPACE_TIMES_MIN 50u /* seconds are kept for two days only, then a short run has one row */
#define RUNPACE_SLOW_MAX 64u  /* slow stretches; the rest counts as slow from the last one on */

struct runpace_row {
	int64_t at_s, sum_ns;
	uint64_t step, cnt;
};

/* From this step on, until this time. */
struct runpace_slow {
	uint64_t since_step;
	int64_t until_s; /* INT64_MAX: it lasts */
};

struct runpace {
	VEC(struct runpace_row) rows;
	struct runpace_slow slow[RUNPACE_SLOW_MAX];
	size_t slow_cnt;
	bool slow_full; /* the last one lasts, whatever its events say */
};

struct runpace_sum {
	bool known;			    /* false: too few rows */
	int64_t median_ns, low_ns, high_ns; /* of an iteration; low, high: 5 % and 95 % */
	size_t row_cnt;
};

/* A row without iterations, or without time, is ignored. Returns 0 or -ENOMEM. */
_must_check_ int runpace_add(struct runpace *pace, const struct runpace_row *row);

/* The job became slow at that step; it is no longer. */
void runpace_begin_slow(struct runpace *pace, uint64_t since_step);
void runpace_end_slow(struct runpace *pace, int64_t at_s);

/*
 * The same from an event of the store: "slow" or "slow-over"; other kinds are ignored. A pace that a
 * person accepted ends the slow stretch by a "slow-over", too.
 */
void runpace_take_event(struct runpace *pace, const char *kind, const char *text, int64_t at_s);

/* Returns 0 or -ENOMEM. O(n log n). */
_must_check_ int runpace_sum(const struct runpace *pace, struct runpace_sum *ret);

void runpace_done(struct runpace *pace);
