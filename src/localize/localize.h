/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers: fingerprints in, a report out. Joins the workers, finds peers, asks
 * the witnesses (blame, difference, the past, expectation), names causes, merges
 * accusations of one fault, estimates the gain, and decides: abnormal, healthy, or not enough
 * evidence. A report without findings is a correct answer.
 * Source: PerfTracker section 4.3; docs/method.md.
 */
#pragma once

#include "base/err.h"
#include "format/fingerprint/fingerprint.h"
#include "localize/distance/expect.h"
#include "model/report.h"

struct localize_options {
	double min_gain_pct;	   /* of an iteration; findings below are left out. Default 1 */
	uint64_t seed;		   /* of the sample of peers */
	bool exact;		   /* compare with all peers, not a sample */
	const int *ranks_expected; /* the caller's choice of ranks, ascending; NULL: all */
	size_t rank_expected_cnt;
	int workers_expected;		   /* 0: by world_size, the largest rank and their count */
	const char *rank_source;	   /* how ranks were found; may be NULL */
	const char *job_id;		   /* may be NULL: from the fingerprints */
	const struct expect_table *expect; /* NULL: the defaults */
	struct report_trigger trigger;	   /* live: why the window was taken */
	/* Live: fingerprints of a healthy window of the same job, ranks distinct, in any order;
	 * some ranks may be missing. Borrowed. */
	const struct fingerprint *const *past;
	size_t past_cnt;
	const struct report_failure *failures; /* inputs that could not be used; copied */
	size_t failure_cnt;
	bool perhaps_two_jobs;	  /* that all fps are of one job is likely, not sure */
	const char *const *notes; /* remarks of the caller; copied */
	size_t note_cnt;
};

/* Options with their defaults. */
struct localize_options localize_defaults(void);

/*
 * fps[cnt], in any order, ranks known and distinct. Fills ret (its arena owns all;
 * report_done() frees). With no fingerprint the verdict is inconclusive. Returns
 * 0, -EINVAL for two workers of one rank (line in err), or -ENOMEM.
 */
_must_check_ int localize(const struct fingerprint *const *fps, size_t cnt,
			  const struct localize_options *options, struct report *ret,
			  struct err *err);

/* Frees what localize() filled. */
void report_done(struct report *report);
