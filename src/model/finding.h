/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finding: the abnormal function, its workers, its pattern, its cost and the advice. Plain
 * data; every string and array lives in the arena of the report (model/report.h).
 * Source: PerfTracker figure 7; docs/findings.md.
 */
#pragma once

#include "model/event.h"

#include <math.h>

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
enum reference_kind { REFERENCE_PEERS, REFERENCE_EXPECTED, REFERENCE_PAST };

/* One dimension of a fingerprint and the reference it was compared with. */
struct finding_value {
	bool present;		 /* false: not measured, printed as null or "-" */
	double value, reference; /* fractions 0..1 */
	enum reference_kind reference_kind;
};

/* Fingerprint of the finding's function on one worker, for the scatter picture. NAN: absent. */
struct finding_point {
	int rank;
	bool accused;
	double beta_frac, mu_frac, sigma_frac;
	double time_ms; /* critical time per iteration */
};

/* How much of the time that iterations take longer than before the stalls of a stall window are. */
struct finding_explained {
	bool present, at_most; /* at_most: stalls of several threads are added up */
	double iteration_ms, baseline_ms, frac;
};

struct finding {
	const char *id;	   /* "PT-101", stable, listed in docs/findings.md */
	const char *cause; /* "host-stall", stable */
	const char *title; /* one line of text */

	const char *key;  /* 32 hex digits: the function's identity */
	const char *name; /* display name of the function */
	enum event_class class;
	const char *const *stack; /* outermost first; may be empty */
	size_t stack_cnt;

	bool all_workers; /* scope "all", else "some" */
	const int *ranks; /* the ranks accused, ascending */
	size_t rank_cnt;
	const char *const *hosts; /* hosts of these ranks, distinct; may be empty */
	size_t host_cnt;
	const int *victims; /* ranks that waited for them */
	size_t victim_cnt;

	double time_ms_per_iteration;  /* critical time in the function on the accused ranks */
	double delta_ms_per_iteration; /* above the reference */
	struct finding_value beta, mu, sigma;
	double expectation_distance, differential_distance, threshold;
	bool apart; /* none waited: the ranks lose time of their own iterations only */
	double gain_ms_per_iteration, gain_pct; /* the time a repair would save */
	bool gain_at_most; /* a bound: what is lost there, of which a repair saves a part */
	enum confidence confidence;
	const char *const *evidence;
	size_t evidence_cnt;
	const char *advice;
	struct finding_explained stalls;

	const struct finding_point *points; /* all compared workers */
	size_t point_cnt;

	const char *resource; /* the resource that mu and sigma are shares of: a resource_name() or
			       * a descriptive text; NULL when unknown */
};

const char *confidence_name(enum confidence confidence);
const char *reference_name(enum reference_kind kind); /* "peers", "expected", "before" */

/* Whether the finding names the rank: of all workers it names each. O(log n). */
bool finding_names_rank(const struct finding *finding, int rank);
