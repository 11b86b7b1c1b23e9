/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of whole windows: the pace of one worker before, in and after each of the agent's
 * windows, where the window has at least AROUND_PIECES_MIN pieces of half a second or an
 * iteration. Slices include neither GPU records nor exact tracing, which are too expensive to
 * switch on and off; this comparison does. A job that changes meanwhile increases the error.
 */
#pragma once

#include "live/link/wire.h"
#include "live/link/wire_report.h"

#define AROUND_PIECES_MIN 5u /* fewer pieces give no standard error */

/* The time of a step, from pieces of half a second, whose spread gives the standard error. */
struct around_pace {
	uint64_t from_step;
	int64_t from_ns; /* begin of the current piece; 0: no current piece */
	size_t cnt;	 /* of pieces; below, sums over them */
	double steps, ns, steps_steps, steps_ns, ns_ns;
};

/* One worker's pace around windows. */
struct around {
	bool off;	 /* windows stop the job: nothing is compared */
	uint32_t worker; /* id; 0: none yet */
	uint64_t step;
	enum { AROUND_BEFORE, AROUND_INSIDE, AROUND_AFTER } stage;
	struct around_pace earlier, before, inside, after; /* before follows earlier */
	uint32_t window_cnt;		   /* windows compared; below, sums over them */
	double frac_sum, error_square_sum; /* cost and squared standard error of each */
};

/*
 * Watches the first worker only: all wait for each other. usual: no slices run, no profile is
 * ordered, no summarizer uses the CPUs. Returns true if the cost changed.
 */
bool around_watch(struct around *around, const struct wire_state *states, size_t cnt, bool usual);

/* Forgets the costs: the collectors are others now. */
void around_clear(struct around *around);

/* The mean of the windows; pair_cnt: windows. */
struct wire_cost around_cost(const struct around *around);
