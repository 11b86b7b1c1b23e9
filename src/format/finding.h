/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings and the report: what localize produces and report prints. Plain data;
 * every string and array lives in the arena of the report. docs/report-schema.json
 * is the contract of its JSON form (perftracker.report.v1).
 * Source: PerfTracker figure 7; docs/findings.md.
 */
#pragma once

#include "base/arena.h"
#include "format/event.h"

#include <math.h>

enum verdict { VERDICT_HEALTHY, VERDICT_ABNORMAL, VERDICT_INCONCLUSIVE };
enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
enum reference_kind { REFERENCE_PEERS, REFERENCE_EXPECTED };

/* One dimension of a fingerprint beside what it was compared with. */
struct finding_value {
	bool present;		 /* false: no source for it, printed as null or "-" */
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

struct finding {
	const char *id;	   /* "PT-101", stable, listed in docs/findings.md */
	const char *cause; /* "host-stall", stable */
	const char *title; /* one line for people */

	const char *key;  /* 32 hex digits: the function's identity */
	const char *name; /* the function as people call it */
	enum event_class class;
	const char *const *stack; /* outermost first; may be empty */
	size_t stack_cnt;

	bool all_workers; /* scope "all", else "some" */
	const int *ranks; /* the accused, ascending */
	size_t rank_cnt;
	const char *const *hosts; /* hosts of the accused, distinct; may be empty */
	size_t host_cnt;
	const int *victims; /* ranks that waited for the accused */
	size_t victim_cnt;

	double time_ms_per_iteration;  /* the accused: critical time in the function */
	double delta_ms_per_iteration; /* over the reference */
	struct finding_value beta, mu, sigma;
	double expectation_distance, differential_distance, threshold;
	double gain_ms_per_iteration, gain_pct; /* what its repair gives back */
	enum confidence confidence;
	const char *const *evidence;
	size_t evidence_cnt;
	const char *advice;

	const struct finding_point *points; /* all workers that were compared */
	size_t point_cnt;

	const char *resource; /* what mu and sigma are shares of: a resource_name() or a word for
			       * people; NULL when unknown */
};

/* One analyzed worker, for the pictures and the coverage. */
struct report_worker {
	int rank;
	const char *host;   /* "" when unknown */
	const char *source; /* file or "live" */
	double window_ms;
	const double *iteration_ms;
	size_t iteration_cnt;
	double class_frac[CLASS_CNT]; /* shares of the window; their sum is 1 */
};

/* Late worker `from` made `to` wait, summed over the window. */
struct report_wait {
	int from, to;
	double wait_ms;
	uint64_t collective_cnt;
};

/* A source of data that was not there, and why. */
struct report_absence {
	const char *source, *why;
};

/* An input that could not be used. */
struct report_failure {
	const char *source; /* path */
	const char *why;    /* the reader's line */
};

/* Live only: the slowdown that led to the profile. */
struct report_trigger {
	bool present;
	const char *kind; /* "slowdown", "blocked", "request" */
	double baseline_iteration_ms, current_iteration_ms;
	int64_t step; /* profile began here */
};

/* Live only: what our own collectors cost the job, by the self-audit. */
struct report_cost {
	bool known;
	double pct, error_pct; /* of an iteration's time; one standard error */
};

struct report_overhead {
	bool present;
	bool torch; /* the window was recorded by torch.profiler, whose cost isn't known */
	struct report_cost always, window;
	bool less_samples, no_operators; /* left out in windows, for their cost */
	bool only_marks;		 /* left out between windows: everything else */
};

struct report {
	struct arena arena;
	enum verdict verdict;
	const char *reason;

	const char *job_id;
	int world_size;	     /* expected workers */
	double iterations;   /* analyzed, median over the workers */
	double iteration_ms; /* median over workers and iterations */

	int workers_expected, workers_analyzed;
	const int *missing; /* ranks without data */
	size_t missing_cnt;
	const char *rank_source; /* "distributedInfo", "file names", "order of arguments" */
	const struct report_absence *absences;
	size_t absence_cnt;
	const struct report_failure *failures;
	size_t failure_cnt;
	const char *const *notes; /* drops, mended data, observations that are no findings */
	size_t note_cnt;

	const struct finding *findings; /* by gain, largest first */
	size_t finding_cnt;
	const struct report_worker *workers; /* by rank */
	size_t worker_cnt;
	const struct report_wait *waits; /* by wait_ms, largest first */
	size_t wait_cnt;
	struct report_trigger trigger;
	struct report_overhead overhead;
	double elapsed_ms; /* time the analysis took; printed in text only, never in JSON */
};

const char *verdict_name(enum verdict verdict);
const char *confidence_name(enum confidence confidence);
