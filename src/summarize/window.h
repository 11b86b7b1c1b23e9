/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a summary: the interval of the window, its iterations, and the training thread.
 * Source: PerfTracker section 4.1 (iterations); ARCHITECTURE.md, "Words".
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

#define LANE_NONE UINT32_MAX
#define WINDOW_MAX_NS (365 * 86400 * NSEC_PER_SEC) /* longer windows have damaged times */

struct window_options {
	/* Only iterations whose number is in first..last; last < first: all. */
	int64_t first_step, last_step;
	bool skip_first;  /* skip the first iteration if there are four or more */
	bool skip_warmup; /* skip a much longer first iteration, unless iterations are chosen */
};

struct window {
	int64_t start_ns, end_ns; /* on the trace's clock */
	uint32_t training_lane;	  /* LANE_NONE: no thread runs training code */
	uint32_t backward_lane;	  /* the autograd thread, LANE_NONE when backward runs inline */
	enum iterations_by iterations_by;
	int64_t warmup_ns; /* length of a first iteration that was skipped; 0: none */
	VEC(struct fp_iteration) iterations; /* start_ns relative to start_ns of the window */
};

/*
 * Finds the window. Iterations come from "ProfilerStep#N" annotations, else from the ends of
 * optimizer steps, else from what recurs (repeats.h); without any the window is the extent of all
 * executions and one iteration of unknown number. Only annotated iterations are skipped.
 *
 * Returns 0; -ENODATA with a line in err when the trace has no execution, no requested step, or
 * executions more than a year apart; -ENOMEM. The caller frees ret with window_done() on success.
 */
_must_check_ int window_find(const struct trace *trace, const struct window_options *options,
			     struct window *ret, struct err *err);
void window_done(struct window *window);

/* The number after '#' of "ProfilerStep#12"; -1 for other names. */
int64_t window_step_number(const char *name);
