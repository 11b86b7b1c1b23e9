/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-audit: what our own collectors cost the job, and what is left out when
 * that is too much. In a steady job all workers switch collectors off and on by
 * turns, at the same steps (detect/slices.h); first those of a window, in a few
 * seconds, then those that are always on; and again from time to time.
 *
 * A cost is over its budget when it is so by three standard errors. Then one more
 * thing is left out and the audit is repeated. What was measured and what was left
 * out is in every report and in `perftracker status`.
 * Slices hold neither a GPU's records nor exact tracing, which are too dear to be switched on
 * and off. So every window of our own collectors is compared with the time around it, too: the pace
 * of one worker before, in and after it, where the window has at least AUDIT_PIECES_MIN pieces of
 * half a second or an iteration. That counts as the cost of a window where it is surely more than
 * the slices say; nothing is left out for it. A job that changes meanwhile only makes it unsure.
 *
 * An audit ends when the job looks slow. If it still does when the iterations of the
 * slices are forgotten, it wasn't our doing (audit_excuses()); if it doesn't, twice in a
 * row, the collectors were too dear to be audited, and the same is done about it.
 * Pure: the hub sends what audit_tick() asks for.
 */
#pragma once

#include "base/str.h"
#include "detect/slices.h"
#include "live/link/wire.h"
#include "live/run/options.h"

struct audit_series {
	struct slices_cost cost; /* pair_cnt 0: not measured yet */
	int64_t measured_ns;
	int64_t due_ns; /* 0: as soon as the job is steady */
};

#define AUDIT_PIECES_MIN 5u /* the spread of fewer is no error */

/* The time of a step over a stretch, from pieces of it whose spread tells the error. */
struct audit_pace {
	uint64_t from_step;
	int64_t from_ns; /* begin of the piece that is under way; 0: none is */
	size_t cnt;	 /* of pieces, and their sums */
	double steps, ns, steps_steps, steps_ns, ns_ns;
};

/* One worker's pace around windows. */
struct audit_around {
	uint32_t worker; /* id; 0: none yet */
	uint64_t step;
	enum { AROUND_BEFORE, AROUND_INSIDE, AROUND_AFTER } stage;
	struct audit_pace earlier, before, inside, after; /* before follows earlier */
	struct slices_cost cost;			  /* pair_cnt: windows */
};

struct audit {
	double budget_frac[2]; /* by enum audit_kind */
	bool off;	       /* --no-audit */
	uint64_t id;	       /* of the latest */
	bool running;
	uint32_t kind;
	uint32_t recent_cnt; /* iterations that a detector averages */
	uint64_t calm_step;  /* from here on no average holds iterations of an audit */
	bool slowed;	     /* the latest of a window ended because the job looked slow */
	unsigned slowed_cnt; /* audits in a row that alone made it look so */
	uint64_t step;	     /* of the worker that is behind, and since when it is there */
	int64_t step_ns, patience_ns;
	int64_t limit_ns;	     /* it is over then, or taken back */
	struct slices_cost *results; /* of the workers that told, and had seen enough */
	size_t result_cnt, told_cnt, worker_cnt;
	struct audit_series series[2]; /* by enum audit_kind */
	bool around_off;	       /* windows stop the job: what is around them says nothing */
	struct audit_around around;
	uint32_t backoff;
};

/* A set of bits. */
enum audit_action {
	AUDIT_NOTHING = 0,
	AUDIT_SEND = 1,	   /* the order in *order goes to all workers */
	AUDIT_PUBLISH = 2, /* audit_overhead() has news */
};

void audit_init(struct audit *audit, const struct run_options *options);
void audit_done(struct audit *audit);

/*
 * Looks whether an audit is to begin or to end. states[cnt]: all workers; quiet:
 * no profile is under way or about to be. Returns what is to be done: bits of enum
 * audit_action.
 */
unsigned audit_tick(struct audit *audit, const struct wire_state *states, size_t cnt, bool quiet,
		    int64_t now_ns, struct wire_audit *order);

/* Whether a job that looks slow may be so because of an audit's slices. */
bool audit_excuses(const struct audit *audit, const struct wire_state *states, size_t cnt);

/* What one worker's slices say. */
void audit_take(struct audit *audit, const struct wire_audited *audited);

void audit_overhead(const struct audit *audit, struct wire_overhead *ret);

/* Appends "always_pct=... always_error_pct=... window_pct=... left_out=BITS"; what was not
 * measured yet is left out. */
void audit_describe(const struct wire_overhead *overhead, struct str *text);
