/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which function some ranks spend the time that others do not: the tree of calls is followed from
 * its root to the call that holds most of the difference, for as long as one call holds enough of it.
 */
#pragma once

#include "sampled/sampledview.h"

struct sampledplace {
	uint32_t node;	      /* the root: no function holds enough */
	uint32_t deepest;     /* where the search ended; node is the user's function above it */
	double own_frac;      /* of the samples of the ranks: in node */
	double peers_frac;    /* the same of the others */
	double blocked_frac;  /* of the samples in node: the thread was not on a CPU */
	const char *waits_in; /* native function in which most of those were; "" unknown */
	bool in_loader;
	uint32_t worker;    /* function of the loader's workers meanwhile; the root: not known */
	double worker_frac; /* of their samples */
};

/*
 * ranks: of whom, one flag per rank. Of the others the mean is taken off, if against_others. phase:
 * PHASE_CNT, all but waits for peers; else only samples of that phase. least_frac: of all samples of
 * the ranks, which a function must hold. Returns 0 or -ENOMEM.
 */
struct sampledplace_search {
	const bool *ranks;
	bool against_others;
	enum sampled_phase phase;
	double least_frac;
};
_must_check_ int sampledplace_find(const struct sampledview *view,
				   const struct sampledplace_search *search,
				   struct sampledplace *ret);
