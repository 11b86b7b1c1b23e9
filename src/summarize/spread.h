/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variation of functions between iterations: their time in each iteration, along the critical
 * path. Compare tests a difference against this variation.
 */
#pragma once

#include "summarize/pass.h"

/* Times of functions (columns) in iterations (rows), filled row by row. */
struct spread {
	double *cells;			       /* NULL: not computed */
	const struct fp_iteration *iterations; /* in order of time */
	size_t iteration_cnt, function_cnt;
	int64_t sample_ns; /* between two stacks; 0: they are exact */
	size_t next;	   /* first iteration that ends after the segments so far */
};

/*
 * Fills spread_ns of fp's functions: the variation between iterations. Where functions of one class
 * ran at once, the spread is that of the function on the path, scaled. With sampled stacks it is at
 * least that of a count of samples: such stacks last from sample to sample, so in short iterations
 * a function that few samples hit seems to take about as long in each. Windows of one iteration,
 * and products of functions and iterations beyond 4 million, have none. Between init and end,
 * spread_segment() receives the critical path's segments in time order. Returns 0 or -ENOMEM;
 * spread_done() is fine after either.
 */
_must_check_ int spread_init(struct spread *spread, const struct pass *p,
			     const struct fingerprint *fp);
void spread_segment(struct spread *spread, const struct pass *p, const struct crit_segment *seg);
void spread_end(const struct spread *spread, struct fingerprint *fp);
void spread_done(struct spread *spread);
