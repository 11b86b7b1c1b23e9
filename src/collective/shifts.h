/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which executions are one collective: the executions of a process group on two workers differ by
 * a shift, because their windows begin and end at different moments. Sequence numbers give the
 * shift where both workers have them. Where both have one clock it is the shift at which
 * executions end together. Else it is the shift near "the windows end together" at which the ends
 * of executions differ most constantly; the constant is the offset of the clocks.
 * Source: docs/method.md, "Which executions are one collective".
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

/* What a worker executed, in order. */
struct shift_worker {
	const struct fp_collective *all;
	size_t cnt;
	uint64_t clock;	  /* equal: one clock, which start_ns is of; 0: the worker's own */
	int64_t start_ns; /* the moment that the times of all[] count from */
};

/* Of it, the executions of one process group. */
struct shift_list {
	const struct fp_collective *all; /* the worker's */
	uint32_t worker;
	uint32_t *idx; /* indices in all */
	size_t cnt;
	int64_t shift;	  /* instance k of the group is idx[k - shift], where that exists */
	double offset_ns; /* this worker's window clock minus the reference's */
};

/* One group of workers that wait for each other. */
struct shift_group {
	struct shift_list *members;
	size_t member_cnt;
	int64_t first, last; /* instances are numbered first..last */
};

typedef VEC(struct shift_group) shift_groups;

/*
 * Finds the groups with at least two members, arrays in arena. *ret_unmatched counts the
 * executions without a partner. Returns 0 or -ENOMEM; the caller frees ret with vec_done().
 * O(executions), and O(executions of a group) for each shift that is tried.
 */
_must_check_ int shifts_find(const struct shift_worker *workers, size_t cnt, struct arena *arena,
			     shift_groups *ret, uint64_t *ret_unmatched);

/* The execution of a member for an instance; NULL: its window does not hold it. */
static inline const struct fp_collective *shift_borrow(const struct shift_list *member,
						       int64_t instance)
{
	int64_t pos = instance - member->shift;

	return pos >= 0 && pos < (int64_t)member->cnt ? &member->all[member->idx[pos]] : NULL;
}

/*
 * Whether the execution of an instance begins on some member before the last one of the group
 * has ended there: those two have no common end between them.
 */
bool shift_overlaps(const struct shift_group *group, int64_t instance);

/*
 * The same, or at once when the last one has ended: it was queued behind it on that member, which
 * did meanwhile what a late member has still to do.
 */
bool shift_is_queued(const struct shift_group *group, int64_t instance);
