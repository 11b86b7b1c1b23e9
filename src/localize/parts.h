/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a report that don't depend on how workers are held: whole fingerprints
 * side by side (localize.c) or columns of codes (center/columns/columns_report.c). All texts are copied
 * into the report's arena, so that it outlives its input.
 */
#pragma once

#include "localize/job.h"
#include "localize/localize.h"
#include "localize/witness/witness.h"

#define PARTS_MAX_NOTES 24 /* further ones are dropped */

/* What the witnesses are asked; whether all workers are present is left to the caller. */
struct accuse_options parts_accuse_options(const struct localize_options *options,
					   const struct expect_table *expect, double iteration_ns);

/*
 * Copies the list of fingerprints, sorted by rank; the caller frees *ret. Returns 0, -ENOMEM, or
 * -EINVAL where two have the same rank, each with a line in err. O(n log n).
 */
_must_check_ int parts_sort_workers(const struct fingerprint *const *fps, size_t cnt,
				    const struct fingerprint ***ret, struct err *err);

/* A copy of text, of "" for NULL. NULL: out of memory. */
const char *parts_copy(struct report *out, const char *text);

/*
 * Appends a line, owned by the report's arena, to notes[PARTS_MAX_NOTES]. Returns 0, or
 * -ENOMEM where line is NULL, so that it takes what arena_printf() gives.
 */
_must_check_ int parts_note(struct report *out, const char **notes, const char *line);

/* The caller's notes. Returns 0 or -ENOMEM. */
_must_check_ int parts_copy_notes(struct report *out, const char **notes,
				  const struct localize_options *options);

/*
 * Notes of the records that job's workers lost or that were mended, by kind; instants, flows and
 * objects occur in every trace and are not reported. Returns 0 or -ENOMEM.
 */
_must_check_ int parts_note_drops(struct report *out, const char **notes, const struct job *job);

/* A note of a first iteration that was left out as warm-up. Returns 0 or -ENOMEM. */
_must_check_ int parts_note_warmup(struct report *out, const char **notes, const struct job *job);

/* A note of how iterations are known where nothing marks them. Returns 0 or -ENOMEM. */
_must_check_ int parts_note_guesses(struct report *out, const char **notes, const struct job *job);

/* The inputs that could not be used. Returns 0 or -ENOMEM. */
_must_check_ int parts_copy_failures(struct report *out, const struct localize_options *options);

struct parts_job {
	const int *ranks; /* of the workers, ascending */
	size_t worker_cnt;
	size_t input_cnt;    /* workers and inputs that must have been some; 0: not counted */
	int world_size;	     /* the largest that a worker knows of */
	int group_size;	     /* of the largest group */
	double iterations;   /* median over workers */
	double iteration_ns; /* median over workers */
	const char *job_id;  /* may be NULL */
};

/* Sets the report's description of the job and its missing workers. Returns 0 or -ENOMEM. */
_must_check_ int parts_describe_job(struct report *out, const struct localize_options *options,
				    const struct parts_job *job);

/* A line for each worker of job; hosts and time of the window. Returns 0 or -ENOMEM. */
_must_check_ int parts_describe_workers(struct report *out, const struct job *job);

/* Makes a finding of an accusation, in the report's arena. Returns 0 or -ENOMEM. */
typedef int parts_compose(void *arg, const struct accusation *a, struct finding *ret);

/*
 * The report's findings, of what compose(arg) makes of each accusation: those of one fault
 * are merged, those that give back less than min_gain_pct left out, the surest and largest
 * come first. Returns 0 or what compose() returned.
 */
_must_check_ int parts_make_findings(struct report *out, const accusations *list,
				     double min_gain_pct, parts_compose *compose, void *arg);
