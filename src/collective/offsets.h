/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the clocks of workers differ, by the collectives that they end together. Two workers
 * have one difference, whichever collectives show it: lists of collectives that show another one,
 * and less steadily, do not end together, though their rhythm is the same. So two groups of
 * experts, of which one waits for a late member and the other does not, are told apart.
 */
#pragma once

#include "base/vec.h"

/* What the executions of one group on two workers show. */
struct offset_edge {
	uint32_t a, b;	  /* workers */
	double ns;	  /* b's clock minus a's */
	double spread_ns; /* mean deviation from it */
	bool sure;	  /* the group is known: they do end together */
};

typedef VEC(struct offset_edge) offset_edges;

struct offset_worker {
	uint32_t root; /* one of those whose clocks are compared with this one, perhaps itself */
	double ns;     /* this worker's clock minus that of the root */
};

struct offsets {
	struct offset_worker *workers;
	double *spread_ns; /* by root: largest spread of the edges that were used */
	size_t cnt;
};

/*
 * Uses as few edges as needed, the steadiest first, and sorts them. Returns 0 or -ENOMEM;
 * offsets_done() is fine after either. O(edges log edges + workers log workers).
 */
_must_check_ int offsets_find(offset_edges *edges, size_t worker_cnt, struct offsets *ret);
void offsets_done(struct offsets *offsets);

/* Whether an edge that is not sure shows another difference than steadier ones do. */
bool offsets_contradict(const struct offsets *offsets, const struct offset_edge *edge);
