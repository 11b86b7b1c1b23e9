/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an accusation to a cause with a name: the table of patterns. Ids and
 * names are stable and listed in docs/findings.md.
 * Source: PerfTracker sections 3, 6.1 and 6.2.
 */
#pragma once

#include "localize/cause_list.h"
#include "localize/witness/witness.h"
#include "model/place/awaited.h"

enum cause {
#define X(id, number, name, title, advice) CAUSE_##id,
	CAUSE_LIST(X)
#undef X
		CAUSE_CNT
};

struct cause_text {
	const char *number, *name, *title, *advice;
};

const struct cause_text *cause_text(enum cause cause);

/* The advice that fits: for all ranks instead of one, and for the function of this name. */
const char *cause_advice(enum cause cause, bool all_workers, const char *name);

/* What the accused and their peers look like; NAN where nothing was measured. */
struct cause_facts {
	double run_delay_ns, run_delay_peers_ns;     /* per iteration */
	double cpu_ns, cpu_peers_ns;		     /* training thread, per iteration */
	double other_cpu_ns, other_cpu_peers_ns;     /* busiest other thread, per iteration */
	double gc_ns, gc_peers_ns;		     /* per iteration */
	double work_ratio;			     /* elements processed, accused / peers */
	double compute_ratio;			     /* time to compute, the same */
	double mu, mu_peers, sigma, sigma_peers;     /* of the main function */
	double throttled_frac, throttled_peers_frac; /* of the window, by power or heat */
	double clock_frac, clock_peers_frac;	     /* of the cores' highest */
	double extra_ns; /* per iteration, at a place where peers spend nothing; 0: they do */
	const char *thief, *other_name; /* of the worst of the accused; may be NULL */
	struct awaited awaited;		/* likewise; place NULL: unknown */
	/* Its rank, if those that another of the accused waits for are elsewhere; else -1. */
	int awaited_rank;
	double thief_frac;
};

/* Measures the accused (medians) against all other workers of their groups. */
_must_check_ int cause_measure(const struct job *job, const struct accusation *a,
			       struct cause_facts *ret);

/* The cause by the first condition that holds; findings about all workers have their own. */
enum cause cause_find(const struct job *job, const struct accusation *a,
		      const struct cause_facts *facts);
