/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers of a large job, in columns: what job.h is for some thousand workers with
 * whole fingerprints, for a million with the numbers that equations 6 to 11 need, each
 * a code16 as it came over the wire. Rows are added worker by worker, in any order;
 * columns_join() sorts workers by rank, finds peers and turns the table by function.
 * Nothing that comes out depends on the order of adding.
 *
 * Limits. Columns hold no collectives, so blame (lateness in collectives) is not computed. They
 * hold no lengths of single iterations, so the rule of occasions (witness/by_expectation.c) isn't
 * applied: a checkpoint that came once in the window, on all workers, counts as if it came in
 * every iteration, and may be a finding here that localize() does not report.
 */
#pragma once

#include "base/idmap.h"
#include "localize/job.h"

enum column { COLUMN_BETA, COLUMN_MU, COLUMN_SIGMA, COLUMN_SHARE, COLUMN_CNT };

struct columns_worker {
	int rank;
	int world_size;	     /* -1 unknown */
	uint32_t iterations; /* at least 1 */
	int64_t window_ns;
	double lost_frac; /* of its records: job_lost_frac() */
	const char *host; /* borrowed; "" unknown */
	uint64_t tag;	  /* the caller's: where the whole fingerprint is */
	uint32_t group;	  /* peer group; set by columns_join() */
	uint32_t cnt;	  /* rows */
	size_t first;	  /* of its rows as they were added */
};

/* Its rows after columns_join(): [first, first + cnt), by place. */
struct columns_function {
	uint32_t frame; /* FRAME_NONE: outside of all */
	uint8_t class;
	uint64_t share_ns; /* of all workers */
	size_t first, cnt;
};

struct columns {
	VEC(struct columns_worker) workers; /* by rank after columns_join() */
	VEC(struct job_frame) frames;	    /* callers before callees; names borrowed */
	VEC(struct columns_function) functions;
	struct idmap frame_by_key, function_by_frame;
	/* Rows as they are added. */
	VEC(uint32_t) added_function;
	VEC(uint16_t) added[COLUMN_CNT];
	/* Rows by function and place: a place is a worker in the order of (group, rank). */
	uint32_t *place;
	uint16_t *codes[COLUMN_CNT];
	uint32_t *worker_at;	 /* by place: index in workers */
	VEC(size_t) group_first; /* by group, and the end: its first place */
	double iteration_ns;	 /* median over workers of window / iterations */
};

void columns_done(struct columns *columns);

/*
 * Index of the frame, added when its key is new. parent: an index, FRAME_NONE at a root.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int columns_frame(struct columns *columns, struct job_frame frame, uint32_t *ret);

/* Index of a function, added when it is new. Returns 0 or -ENOMEM. */
_must_check_ int columns_function(struct columns *columns, uint32_t frame, uint8_t class,
				  uint32_t *ret);

/* Adds a worker whose rows come next; ranks must be distinct. Returns 0 or -ENOMEM. */
_must_check_ int columns_worker(struct columns *columns, struct columns_worker worker);

/* A row of the latest worker. Codes: fractions, and share in ns. Returns 0 or -ENOMEM. */
_must_check_ int columns_row(struct columns *columns, uint32_t function,
			     const uint16_t codes[COLUMN_CNT]);

/* Adds a whole fingerprint, whose texts are borrowed. Returns 0 or -ENOMEM. */
_must_check_ int columns_fingerprint(struct columns *columns, const struct fingerprint *fp,
				     uint64_t tag);

/*
 * Replaces the number of the function in all rows by function_of[number], for callers that
 * add rows before the functions' names are known. O(rows).
 */
void columns_renumber(struct columns *columns, const uint32_t *function_of);

/* Ends the adding. The rows as added are freed. Returns 0 or -ENOMEM. O(workers + rows). */
_must_check_ int columns_join(struct columns *columns);

/* Sets group of every worker and group_first, as peers.h does for a job. 0 or -ENOMEM. */
_must_check_ int columns_peers(struct columns *columns);

/* The first row of a function at a place or after it; first + cnt: none. O(log rows). */
size_t columns_row_from(const struct columns *columns, const struct columns_function *f,
			size_t place);

/* The row of a function at a place; SIZE_MAX where it is not listed. O(log rows). */
size_t columns_row_find(const struct columns *columns, const struct columns_function *f,
			uint32_t place);
