/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pairs of slices of one kind of overhead (enum overhead_kind), over all its audits, and the
 * cost that they show: detect/signedrank.h over the latest SERIES_PAIRS_MAX of them. Pairs are
 * weighted alike: an audit's own spread is too uncertain to weight audits by it.
 *
 * A job changes: if two audits in a row contradict the older pairs, each alone and on the same
 * side, the older ones are dropped. One audit of a hundred does so by chance.
 */
#pragma once

#include "live/link/wire_report.h"

#define SERIES_PAIRS_MAX 2048u

struct series {
	double pairs[SERIES_PAIRS_MAX]; /* ring */
	size_t cnt;			/* pairs ever added since series_clear() */
	double latest[WIRE_PAIRS_MAX];	/* of the latest audit */
	size_t latest_cnt;
	int side; /* on which the latest audit contradicted the older ones; 0: it did not */
};

void series_clear(struct series *series);

/* Adds the pairs of one audit; those that are NAN are skipped. */
void series_add(struct series *series, const double *pairs, size_t cnt);

/* confidence: 0.95 for what is shown. pair_cnt 0 if there are too few pairs for it. */
struct wire_cost series_cost(const struct series *series, double confidence);
