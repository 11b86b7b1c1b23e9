/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of a job over all its steps, in bounded memory: when the list is full, neighbors become
 * one point of twice the length. For the picture "Pace of the run" of reports.
 */
#pragma once

#include "model/report.h"

#define PACELOG_MAX 400u

struct pacelog_point {
	uint64_t step; /* the first */
	int64_t min_ns, max_ns;
	double sum_ns;
	uint64_t cnt; /* of the times in it */
};

struct pacelog {
	struct pacelog_point points[PACELOG_MAX];
	size_t cnt;
	uint64_t last_step;
	uint64_t per_point; /* times in a point, but for the last one; 0: 1 */
};

/*
 * Adds the time of an iteration, at this step of the job. A step that was seen adds nothing; an
 * earlier one begins anew: the job was restarted.
 */
void pacelog_add(struct pacelog *log, uint64_t step, int64_t iteration_ns);

/* Sets report->pace, in the report's arena; leaves it empty when there is no memory. */
void pacelog_fill(const struct pacelog *log, int64_t best_ns, struct report *report);
