/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collective on one worker is which on another. Ranks hold different
 * numbers of them: windows begin and end at different moments.
 * Source: docs/method.md, "Who came late, and why"; cases of old traces without
 * sequence numbers.
 */
#pragma once

#include "localize/job.h"

/* The collectives of one group on one worker, in order. */
struct match_list {
	uint32_t worker;
	uint32_t *idx; /* indices in the fingerprint's collectives */
	size_t cnt;
	int64_t shift;	  /* instance k of the group is idx[k - shift], where that exists */
	double offset_ns; /* this worker's window clock minus the reference's */
};

/* One group of workers that wait for each other. */
struct match_group {
	struct match_list *members;
	size_t member_cnt;
	int64_t first, last; /* instances are numbered first..last */
};

typedef VEC(struct match_group) match_groups;

/*
 * Finds the groups with at least two members, arrays in arena. Counts the
 * collectives that found no partner. Returns 0 or -ENOMEM; the caller frees
 * ret with vec_done().
 */
_must_check_ int match_find(const struct job *job, struct arena *arena, match_groups *ret,
			    uint64_t *ret_unmatched);

/*
 * Whether a collective of a group begins on some member before its last one has ended there:
 * those have no common end between them.
 */
bool match_overlaps(const struct job *job, const struct match_group *group, int64_t instance);

/* The collective of a member for an instance; NULL when its window does not hold it. */
const struct fp_collective *match_borrow(const struct job *job, const struct match_list *member,
					 int64_t instance);
