/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What data loading costs: iterations with the loader's own batches against iterations of the same
 * run in which its first batches were given again. A real block and the repeated one beside it are
 * a pair; the cost is the median of the pairs' differences. Its interval is that of the sign test,
 * which assumes nothing of how the differences are distributed: from the k-th smallest difference
 * to the k-th largest one, with the largest k that leaves at most 5 % outside. The iterations of a
 * job with collectives end together, so a block is as long as on its slowest rank.
 */
#pragma once

#include "cmd/roofline/rooflog.h"

#define CEILING_PAIRS_MIN 6	   /* with fewer, no interval has 95 % */
#define CEILING_NONE_FRAC_MAX 0.05 /* of an iteration: a larger cost may not be denied */
#define CEILING_SIZE_FRAC_MAX 0.02 /* repeated batches may be this much larger or smaller */

enum ceiling_verdict {
	CEILING_COST,	 /* the interval is above zero */
	CEILING_NONE,	 /* the interval has zero, and nothing above CEILING_NONE_FRAC_MAX */
	CEILING_UNCLEAR, /* the interval has zero, and more: the noise is too large */
	CEILING_SLOWER,	 /* repeated batches were slower, which loading does not explain */
	CEILING_REFUSED, /* why says it */
};

/* How long a rank waited for its loader, per real iteration. */
struct ceiling_rank {
	const struct rooflog *log; /* borrowed */
	double wait_ns;
};

struct ceiling {
	enum ceiling_verdict verdict;
	char why[640];		     /* CEILING_REFUSED */
	size_t pair_cnt;	     /* used */
	uint64_t iterations;	     /* of each kind */
	double real_ns, repeated_ns; /* medians of an iteration */
	double cost_ns, low_ns, high_ns;
	double size_ratio;	    /* of repeated to real batches; -1: unknown */
	uint64_t epochs;	    /* that began inside the blocks of the first rank */
	struct ceiling_rank *ranks; /* by rank; in the order of logs else */
	size_t rank_cnt;
	int world; /* -1: unknown */
};

/* The most pairs that lie outside the interval at one of its ends. */
size_t ceiling_outside(size_t pair_cnt);

/*
 * logs[cnt], cnt above 0: of the job's processes, which the result borrows; of several of one rank
 * the latest counts. Returns 0, or -ENOMEM. The caller frees with ceiling_done().
 */
_must_check_ int ceiling_find(const struct rooflog *logs, size_t cnt, struct ceiling *ret);

void ceiling_done(struct ceiling *ceiling);
