/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers of a large job, in columns: what job.h is for some thousand workers with
 * whole fingerprints, for a million with the numbers that equations 6 to 11 need, each
 * a code16 as it came over the wire. Rows are added worker by worker, in any order;
 * crowd_join() sorts workers by rank, finds peers and turns the table by function.
 * Nothing that comes out depends on the order of adding.
 *
 * Limits. There are no collectives, so nobody can be asked who waited for whom. There are
 * no lengths of single iterations, so the rule of occasions (accuse_expectation.c) isn't
 * applied: a checkpoint that came once in the window, on all workers, is taken for
 * something that comes all the time, and may be a finding here that a job does not have.
 */
#pragma once

#include "base/idmap.h"
#include "localize/job.h"

enum crowd_column { CROWD_BETA, CROWD_MU, CROWD_SIGMA, CROWD_SHARE, CROWD_COLUMN_CNT };

struct crowd_worker {
	int rank;
	int world_size;	     /* -1 unknown */
	uint32_t iterations; /* at least 1 */
	int64_t window_ns;
	const char *host; /* borrowed; "" unknown */
	uint64_t tag;	  /* the caller's: where the whole fingerprint is */
	uint32_t group;	  /* peer group; set by crowd_join() */
	uint32_t cnt;	  /* rows */
	size_t first;	  /* of its rows as they were added */
};

/* Its rows after crowd_join(): [first, first + cnt), by place. */
struct crowd_function {
	uint32_t frame; /* FRAME_NONE: outside of all */
	uint8_t class;
	uint64_t share_ns; /* of all workers */
	size_t first, cnt;
};

struct crowd {
	VEC(struct crowd_worker) workers; /* by rank after crowd_join() */
	VEC(struct job_frame) frames;	  /* callers before callees; names borrowed */
	VEC(struct crowd_function) functions;
	struct idmap frame_by_key, function_by_frame;
	/* Rows as they are added. */
	VEC(uint32_t) added_function;
	VEC(uint16_t) added[CROWD_COLUMN_CNT];
	/* Rows by function and place: a place is a worker in the order of (group, rank). */
	uint32_t *place;
	uint16_t *columns[CROWD_COLUMN_CNT];
	uint32_t *worker_at;	 /* by place: index in workers */
	VEC(size_t) group_first; /* by group, and the end: its first place */
	double iteration_ns;	 /* median over workers of window / iterations */
};

void crowd_done(struct crowd *crowd);

/*
 * Index of the frame, added when its key is new. parent: an index, FRAME_NONE at a root.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int crowd_frame(struct crowd *crowd, struct job_frame frame, uint32_t *ret);

/* Index of a function, added when it is new. Returns 0 or -ENOMEM. */
_must_check_ int crowd_function(struct crowd *crowd, uint32_t frame, uint8_t class, uint32_t *ret);

/* Adds a worker whose rows come next; ranks must be distinct. Returns 0 or -ENOMEM. */
_must_check_ int crowd_worker(struct crowd *crowd, struct crowd_worker worker);

/* A row of the latest worker. Codes: fractions, and share in ns. Returns 0 or -ENOMEM. */
_must_check_ int crowd_row(struct crowd *crowd, uint32_t function,
			   const uint16_t codes[CROWD_COLUMN_CNT]);

/* Adds a whole fingerprint, whose texts are borrowed. Returns 0 or -ENOMEM. */
_must_check_ int crowd_fingerprint(struct crowd *crowd, const struct fingerprint *fp, uint64_t tag);

/*
 * Replaces the number of the function in all rows by function_of[number]: for who adds
 * rows before the functions' names are known. O(rows).
 */
void crowd_renumber(struct crowd *crowd, const uint32_t *function_of);

/* Ends the adding. The rows as added are freed. Returns 0 or -ENOMEM. O(workers + rows). */
_must_check_ int crowd_join(struct crowd *crowd);

/* Sets group of every worker and group_first, as peers.h does for a job. 0 or -ENOMEM. */
_must_check_ int crowd_peers(struct crowd *crowd);

/* Index of the function (frame, class), FRAME_NONE when no worker has it. */
uint32_t crowd_function_find(const struct crowd *crowd, uint32_t frame, uint8_t class);

/* The first row of a function at a place or after it; first + cnt: none. O(log rows). */
size_t crowd_row_from(const struct crowd *crowd, const struct crowd_function *f, size_t place);

/* The row of a function at a place; SIZE_MAX where it is not listed. O(log rows). */
size_t crowd_row_find(const struct crowd *crowd, const struct crowd_function *f, uint32_t place);
