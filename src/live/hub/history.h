/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slowdowns of a job and the reports made of each, for the last report: what was wrong during
 * the run and is over by its end must still be reported. A fixed number is kept: the first ones and
 * the latest.
 */
#pragma once

#include "base/str.h"
#include "live/hub/jobstate.h"
#include "model/verdict.h"

#define HISTORY_MAX 8u

struct history_slowdown {
	uint64_t since_step, until_step; /* until_step 0: it lasts */
	int64_t baseline_ns, now_ns;	 /* of an iteration; the longest one seen */
	bool reported;
	uint64_t report; /* number of the last report with a finding, else of the last one */
	enum verdict verdict;
};

struct history {
	struct history_slowdown slowdowns[HISTORY_MAX];
	size_t cnt;
	uint64_t dropped; /* between the first ones and the latest */
};

/* The job's pace: begins a slowdown, follows it, or ends it at this step. */
void history_pace(struct history *history, bool slow, const struct jobstate_pace *pace,
		  uint64_t step);

/* A report of the latest slowdown. */
void history_report(struct history *history, uint64_t number, enum verdict verdict);

/* The slowdown that lasts; NULL: none. */
const struct history_slowdown *history_open(const struct history *history);

/*
 * Appends a phrase for each slowdown that is over and has a report:
 * "; a slowdown from step 120 to 300 (9.8 -> 33.8 ms) is over: report-1.html".
 */
void history_append(const struct history *history, struct str *out);
