/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential distance of a million workers: differ.h on columns of 16-bit numbers
 * (code16.h), with the same answers to the last bit. Distances are taken in single
 * precision, many at once; a pair so near to delta that rounding could decide is
 * judged again as differ.h does.
 * Source: PerfTracker eq. 8-11.
 */
#pragma once

#include "localize/distance/differ.h"

#define DIFFER_NO_ROW UINT32_MAX

/* One function in one peer group. mu and sigma may be CODE16_ABSENT. */
struct differ_codes {
	const uint16_t *beta, *mu, *sigma; /* of the row_cnt members that list the function */
	size_t row_cnt;
	size_t absent_cnt; /* members that don't: beta 0, the others absent */
};

/* Delta of a member is far / of. */
struct differ_found {
	uint32_t of;	     /* peers each was compared with */
	uint32_t far_absent; /* of the members that don't list the function */
	double threshold;    /* median + 5 MAD of eq. 11, over all members */
	bool exceeded;	     /* by a row */
};

/*
 * sample[sample_cnt]: peers to compare with, rows or DIFFER_NO_ROW for one that doesn't
 * list the function. Writes how many of them differ from each row to ret_far[row_cnt].
 * Returns 0 or -ENOMEM. O(row_cnt * sample_cnt).
 */
_must_check_ int differ_codes_sampled(const struct differ_codes *points, const uint32_t *sample,
				      size_t sample_cnt, uint32_t *ret_far,
				      struct differ_found *ret);

/*
 * The same with all members as peers (differ_exact.c). Returns 0 or -ENOMEM.
 * O(n log n), and for each row the rows that are about delta away from it.
 */
_must_check_ int differ_codes_exact(const struct differ_codes *points, uint32_t *ret_far,
				    struct differ_found *ret);

/* --- all members as peers, of some rows only --- */

struct differ_exact;

/* points' columns are borrowed. Returns 0 or -ENOMEM. */
_must_check_ int differ_exact_open(const struct differ_codes *points, struct differ_exact **ret);
void differ_exact_close(struct differ_exact *exact);

/* Members that differ from rows[cnt], and from one that doesn't list the function. */
_must_check_ int differ_exact_count(struct differ_exact *exact, const uint32_t *rows, size_t cnt,
				    uint32_t *ret_far, uint32_t *ret_absent);

/*
 * The threshold of eq. 11 from the deltas of rows[cnt] and of absent_cnt members that
 * don't list the function, a sample of all. Returns 0 or -ENOMEM.
 */
_must_check_ int differ_exact_threshold(struct differ_exact *exact, const uint32_t *rows,
					size_t cnt, size_t absent_cnt, struct differ_found *ret);
