/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of localize and input of report: the verdict, the findings, and their evidence.
 * docs/report-schema.json is the contract of its JSON form (perftracker.report.v2).
 * Source: PerfTracker figure 7.
 */
#pragma once

#include "base/arena.h"
#include "model/finding.h"
#include "model/jobloop.h"
#include "model/reportcost.h"
#include "model/reported/reportorigin.h"
#include "model/reported/reportpictures.h"
#include "model/stackdump.h"
#include "model/trigger.h"
#include "model/usage/reportuse.h"
#include "model/verdict.h"

/* One analyzed worker, for the charts and the coverage. */
struct report_worker {
	int rank;
	const char *host;   /* "" when unknown */
	const char *source; /* file or "live" */
	double window_ms;
	const double *iteration_ms;
	size_t iteration_cnt;
	double class_frac[CLASS_CNT]; /* shares of the window; their sum is 1 */
	double comm_hidden_frac;      /* collectives behind other work; NAN: not recorded */
	int64_t first_step;	      /* of the first iteration; -1 unknown */
	/* By iteration: for how long others waited for it, the last of a collective; NULL: unknown. */
	const double *late_ms;
	struct report_use use; /* of its GPUs */
};

/* Late worker `from` made `to` wait, summed over the window. */
struct report_wait {
	int from, to;
	double wait_ms;
	uint64_t collective_cnt;
};

/* A missing source of data and the reason. */
struct report_absence {
	const char *source, *why;
};

/* An unusable input. */
struct report_failure {
	const char *source; /* path */
	const char *why;    /* the reader's error line */
};

/* A function that takes longer than in a healthy window of the same job. */
struct report_growth {
	const char *function;
	const int *ranks; /* on which it grew, ascending */
	size_t rank_cnt;
	double before_ms, now_ms; /* per iteration, on the rank where it grew most */
};

/* A function that holds much of the window. */
struct report_share {
	const char *name, *caller; /* caller: "" without one; of the largest of its places */
	size_t place_cnt;	   /* calling contexts */
	enum event_class class;
	double frac;		 /* of the window, mean over the workers */
	double ms_per_iteration; /* the same, in an iteration */
};

struct report {
	struct arena arena;
	enum verdict verdict;
	const char *reason, *job_id;
	int suspect;	     /* the rank that the reason of an inconclusive report names; */
	bool has_suspect;    /* false: it names none */
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
	const char *const *notes; /* drops, repaired data, observations that are not findings */
	size_t note_cnt;

	const struct finding *findings; /* by gain, largest first */
	size_t finding_cnt;
	const struct report_worker *workers; /* by rank */
	size_t worker_cnt;
	const struct report_wait *waits; /* by wait_ms, largest first */
	size_t wait_cnt;
	const struct report_growth *growth; /* what grew most first; none without a past */
	size_t growth_cnt;
	double alike_factor; /* times as long as before, of all functions alike; 0: they are not */
	const struct report_share *shares; /* of functions, the largest first */
	size_t share_cnt;
	const struct report_total *totals; /* kernels, copies and calls, the longest first */
	size_t total_cnt;
	const struct report_collective *collectives; /* by kind, those with most time first */
	size_t collective_cnt;
	struct report_trigger trigger;
	struct report_loop loop;
	struct report_origin origin;
	struct report_pace pace;
	struct report_lanes lanes;
	struct report_flame flame;
	const struct stacks_process *const *stacks; /* of the ranks of a job that hangs, by rank */
	size_t stack_cnt;
	struct report_overhead overhead;
	double elapsed_ms; /* duration of the analysis; printed in text only, never in JSON */
};
