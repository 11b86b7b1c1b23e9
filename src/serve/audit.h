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
 * An audit ends when the job looks slow. If it still does when the iterations of the
 * slices are forgotten, it wasn't our doing (audit_excuses()); if it doesn't, twice in a
 * row, the collectors were too dear to be audited, and the same is done about it.
 * Pure: the hub sends what audit_tick() asks for.
 */
#pragma once

#include "detect/slices.h"
#include "serve/options.h"
#include "serve/wire.h"

struct audit_series {
	struct slices_cost cost; /* pair_cnt 0: not measured yet */
	int64_t measured_ns;
	int64_t due_ns; /* 0: as soon as the job is steady */
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
