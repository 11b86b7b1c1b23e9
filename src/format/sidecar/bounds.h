/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a window into iterations by the worker's marks: fills a sidecar's iterations.
 *
 * Where the detector knows the job's iteration, its iterations are used. Before, and for a log
 * without a detector, an iteration begins with the first loader call after a step; in a loop
 * without a loader, at each mark that counts steps.
 */
#pragma once

#include "format/shared/block.h"
#include "format/sidecar/sidecar.h"

/* What the detector knows after a mark. Zeroed: no detector. */
struct bounds_view {
	bool learned; /* the job's iteration is known */
	bool ended;   /* an iteration ended with this mark */
	int64_t bound_ns, end_ns;
	uint32_t step_cnt; /* step-counting marks of one iteration */
};

/* Zeroed: no mark yet. */
struct bounds {
	uint64_t step;	/* of the latest mark that counts steps */
	int64_t end_ns; /* of the latest iteration */
	bool stepped;	/* an optimizer stepped since the last bound */
	bool loaded;	/* a loader was called */
};

/* Takes one mark of the window, in order. Without memory a bound is missing. */
void bounds_mark(struct bounds *bounds, const struct ring_record *record,
		 const struct bounds_view *view, struct sidecar *side);

/*
 * After the window's last mark: the last iteration ends, too. Iterations after last_step, the
 * step at which the window ended, are removed; 0: all are kept.
 */
void bounds_end(const struct bounds *bounds, uint64_t last_step, struct sidecar *side);
