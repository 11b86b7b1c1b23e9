/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the overhead of the agent's collectors and switches collectors off where it exceeds
 * the budget. In a steady job all workers switch collectors off and on, in pairs of slices at the
 * same steps, with and without in an order that a coin decides (detect/slices.h): first the
 * collectors of a window, in a few seconds, then those that are always on. Such a measurement is an
 * audit; it is repeated at intervals, and what audits cost is counted as overhead, too.
 *
 * A cost exceeds its budget if the lower bound of its 99 % interval does (series.h). Then one more
 * collector is switched off and the measurement is repeated. Every report and `perftracker status`
 * show the measured costs, with 95 % intervals, and what was switched off.
 *
 * Slices include neither GPU records nor exact tracing. Therefore every window of the agent is also
 * compared with the time around it (around.h). If that cost is significantly more than the slices'
 * cost, it is reported as the cost of a window; it switches nothing off.
 *
 * A measurement ends early when the job looks slow. If the job still looks slow after the
 * slices' iterations have left the detector's average, the slowdown is the job's own
 * (overhead_excuses()). If it does not, twice in a row, the collectors were too expensive to
 * measure, and one more is switched off. Pure: the hub publishes the orders of overhead_tick().
 */
#pragma once

#include "live/link/wire.h"
#include "live/link/wire_report.h"
#include "live/overhead/around.h"
#include "live/overhead/series.h"
#include "live/run/options.h"

struct overhead_series {
	struct series pairs;
	int64_t due_ns;	  /* 0: as soon as the job is steady */
	int64_t retry_ns; /* the latest wait for a repetition before its interval; 0: none */
};

/* What the measurements themselves took. */
struct overhead_audits {
	uint32_t cnt;
	uint64_t start_step; /* of the one under way */
	int64_t from_ns;     /* begin of its slices; 0: not yet */
	int64_t since_ns;    /* when the job's first step was seen */
	int64_t total_ns[2]; /* by enum overhead_kind */
	int64_t took_ns;     /* the latest one */
	double switching_ns; /* what switching cost in all of them */
};

struct overhead {
	double budget_frac[2];	/* by enum overhead_kind */
	int64_t interval_ns[2]; /* by enum overhead_kind: between two measurements */
	bool off;		/* --no-audit */
	uint64_t id;		/* of the latest order */
	bool running;
	uint32_t kind;
	uint32_t recent_cnt; /* iterations in a detector's average */
	/* from this step on no detector's average includes iterations of slices */
	uint64_t calm_step;
	bool slowed; /* the latest OVERHEAD_WINDOW measurement ended early: the job looked slow */
	unsigned slowed_cnt; /* consecutive measurements that alone made the job look slow */
	uint64_t step;	     /* of the worker with the least; step_ns: since when */
	bool blind;	     /* an OVERHEAD_ALWAYS measurement was given up at this step */
	int64_t now_ns, step_ns, patience_ns;
	int64_t limit_ns;		  /* the measurement is canceled then */
	struct wire_slices_cost *results; /* of the workers that have reported */
	size_t reported_cnt, worker_cnt;
	struct overhead_series series[2]; /* by enum overhead_kind */
	struct overhead_audits audits;
	struct around around;
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
