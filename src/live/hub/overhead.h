/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the overhead of the agent's collectors and switches collectors off where it exceeds
 * the budget. In a steady job all workers switch collectors off and on by turns, in slices at
 * the same steps (detect/slices.h): first the collectors of a window, in a few seconds, then
 * those that are always on. The measurement is repeated at intervals.
 *
 * A cost exceeds its budget if it does so by three standard errors. Then one more collector
 * is switched off and the measurement is repeated. Every report and `perftracker status` show
 * the measured costs and what was switched off.
 *
 * Slices include neither GPU records nor exact tracing, which are too expensive to switch on
 * and off. Therefore every window of the agent is also compared with the time around it: the
 * pace of one worker before, in and after the window, where the window has at least
 * OVERHEAD_PIECES_MIN pieces of half a second or an iteration. If that cost is significantly
 * more than the slices' cost, it is reported as the cost of a window; it switches nothing off.
 * A job that changes meanwhile increases the standard error.
 *
 * A measurement ends early when the job looks slow. If the job still looks slow after the
 * slices' iterations have left the detector's average, the slowdown is the job's own
 * (overhead_excuses()). If it does not, twice in a row, the collectors were too expensive to
 * measure, and one more is switched off. Pure: the hub publishes the orders of overhead_tick().
 */
#pragma once

#include "base/str.h"
#include "detect/slices.h"
#include "live/link/wire.h"
#include "live/link/wire_report.h"
#include "live/run/options.h"

struct overhead_series {
	struct slices_cost cost; /* pair_cnt 0: not measured yet */
	int64_t measured_ns;
	int64_t due_ns; /* 0: as soon as the job is steady */
};

#define OVERHEAD_PIECES_MIN 5u /* fewer pieces give no standard error */

/* The time of a step, from pieces of half a second, whose spread gives the standard error. */
struct overhead_pace {
	uint64_t from_step;
	int64_t from_ns; /* begin of the current piece; 0: no current piece */
	size_t cnt;	 /* of pieces; below, sums over them */
	double steps, ns, steps_steps, steps_ns, ns_ns;
};

/* One worker's pace around windows. */
struct overhead_around {
	uint32_t worker; /* id; 0: none yet */
	uint64_t step;
	enum { AROUND_BEFORE, AROUND_INSIDE, AROUND_AFTER } stage;
	struct overhead_pace earlier, before, inside, after; /* before follows earlier */
	struct slices_cost cost;			     /* pair_cnt: windows */
};

struct overhead {
	double budget_frac[2]; /* by enum overhead_kind */
	bool off;	       /* --no-audit */
	uint64_t id;	       /* of the latest order */
	bool running;
	uint32_t kind;
	uint32_t recent_cnt; /* iterations in a detector's average */
	/* from this step on no detector's average includes iterations of slices */
	uint64_t calm_step;
	bool slowed; /* the latest OVERHEAD_WINDOW measurement ended early: the job looked slow */
	unsigned slowed_cnt; /* consecutive measurements that alone made the job look slow */
	uint64_t step;	     /* of the worker with the least; step_ns: since when */
	bool blind;	     /* an OVERHEAD_ALWAYS measurement was given up at this step */
	int64_t step_ns, patience_ns;
	int64_t limit_ns;	     /* the measurement is canceled then */
	struct slices_cost *results; /* of the workers that reported a cost with pairs */
	size_t result_cnt, reported_cnt, worker_cnt;
	struct overhead_series series[2]; /* by enum overhead_kind */
	/* windows stop the job, so they are not compared with the time around them */
	bool around_off;
	struct overhead_around around;
	uint32_t backoff;
};

/* A set of bits. */
enum overhead_action {
	OVERHEAD_NOTHING = 0,
	OVERHEAD_SEND = 1,    /* send the order in *order to all workers */
	OVERHEAD_PUBLISH = 2, /* overhead_results() has changed */
};

void overhead_init(struct overhead *overhead, const struct run_options *options);
void overhead_done(struct overhead *overhead);

/*
 * Begins or ends a measurement if it is due. states[cnt]: all workers; quiet: no profile is
 * under way or about to begin. Returns bits of enum overhead_action.
 */
unsigned overhead_tick(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		       bool quiet, int64_t now_ns, struct wire_slices *order);

/* Whether the slices of a measurement may be why the job looks slow. */
bool overhead_excuses(const struct overhead *overhead, const struct wire_state *states, size_t cnt);

/*
 * Whether the collectors that are always on may be off in the iteration in which the job is:
 * their measurement is running, or was given up since this iteration began. A worker that does
 * not iterate does not read the order that switches them on again.
 */
bool overhead_is_blind(const struct overhead *overhead);

/* Adds the cost that one worker's slices show. */
void overhead_add_cost(struct overhead *overhead, const struct wire_slices_cost *slices);

void overhead_results(const struct overhead *overhead, struct wire_overhead *ret);

/*
 * Appends "always_pct=... always_error_pct=... window_pct=... left_out=BITS"; omits a cost that
 * has not been measured.
 */
void overhead_describe(const struct wire_overhead *overhead, struct str *text);
