/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/match.h"

#include "base/stats.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_SHIFT 16	    /* windows of one profile begin within so many collectives */
#define NAME_AGREE 0.9	    /* share of matched pairs that must be the same operation */
#define WORST 5		    /* one in so many pairs may be off by anything */
#define RESIDUAL_SHARE 0.25 /* of the time between collectives: ends must agree that well */

const struct fp_collective *match_borrow(const struct job *job, const struct match_list *member,
					 int64_t instance)
{
	int64_t pos = instance - member->shift;

	if (pos < 0 || pos >= (int64_t)member->cnt)
		return NULL;
	return &job->workers[member->worker].fp->collectives[member->idx[pos]];
}

static const struct fp_collective *at(const struct job *job, const struct match_list *list,
				      int64_t pos)
{
	return &job->workers[list->worker].fp->collectives[list->idx[pos]];
}

static double end_ns(const struct fp_collective *c)
{
	return (double)(c->start_ns + c->dur_ns);
}

/* Mean time from one end to the next: what a wrong shift would be off by. */
static double mean_interval_ns(const struct job *job, const struct match_list *list)
{
	if (list->cnt < 2)
		return 0;
	return fabs(end_ns(at(job, list, (int64_t)list->cnt - 1)) - end_ns(at(job, list, 0))) /
	       (double)(list->cnt - 1);
}

/*
 * How well other fits ref at a shift: mean deviation of the differences of their
 * ends, without the worst fifth, because a member can learn late that a collective
 * has ended. A median deviation would be 0 at a wrong shift wherever more than half
 * of the intervals are equal.
 */
struct fit {
	int64_t shift;
	double spread_ns, offset_ns;
	size_t pair_cnt;
};

static bool fit_at(const struct job *job, const struct match_list *ref,
		   const struct match_list *other, int64_t shift, double *scratch, struct fit *ret)
{
	size_t pairs = 0, same = 0, kept;
	double center, sum = 0;

	for (int64_t k = 0; k < (int64_t)other->cnt; k++) {
		const struct fp_collective *a, *b = at(job, other, k);

		if (k + shift < 0 || k + shift >= (int64_t)ref->cnt)
			continue;
		a = at(job, ref, k + shift);
		same += a->name == b->name;
		scratch[pairs++] = end_ns(b) - end_ns(a);
	}
	if (pairs == 0 || (double)same < NAME_AGREE * (double)pairs)
		return false;
	center = stats_median(scratch, pairs);
	(void)stats_mad(scratch, pairs, center); /* leaves the deviations, sorted */
	kept = pairs - pairs / WORST;
	for (size_t i = 0; i < kept; i++)
		sum += scratch[i];
	*ret = (struct fit){ .shift = shift,
			     .offset_ns = center,
			     .spread_ns = sum / (double)kept,
			     .pair_cnt = pairs };
	return true;
}

/* Sequence numbers, where both have them, leave nothing to guess. */
static bool shift_by_sequence(const struct job *job, const struct match_list *ref,
			      const struct match_list *other, int64_t *ret)
{
	const struct fp_collective *a = at(job, ref, 0), *b = at(job, other, 0);

	if (a->seq < 0 || b->seq < 0 || !a->group_known || !b->group_known)
		return false;
	for (size_t k = 0; k < other->cnt; k++) {
		if (at(job, other, (int64_t)k)->seq != b->seq + (int64_t)k)
			return false;
	}
	for (size_t k = 0; k < ref->cnt; k++) {
		if (at(job, ref, (int64_t)k)->seq != a->seq + (int64_t)k)
			return false;
	}
	*ret = b->seq - a->seq;
	return true;
}

/* Tries all shifts around "the windows end together". */
static bool best_fit(const struct job *job, const struct match_list *ref,
		     const struct match_list *other, double *scratch, struct fit *ret)
{
	int64_t by_end = (int64_t)ref->cnt - (int64_t)other->cnt, known;
	size_t need = MIN(ref->cnt, other->cnt) * 6 / 10;
	bool found = false;

	if (shift_by_sequence(job, ref, other, &known))
		return fit_at(job, ref, other, known, scratch, ret);
	for (int64_t d = 0; d <= 2 * MAX_SHIFT; d++) {
		/* 0, -1, 1, -2, 2...: of equal fits the one nearest to the end wins. */
		int64_t shift = by_end + (d % 2 == 1 ? -(d + 1) / 2 : d / 2);
		struct fit fit;

		if (!fit_at(job, ref, other, shift, scratch, &fit) || fit.pair_cnt < need)
			continue;
		if (!found || fit.spread_ns < ret->spread_ns) {
			*ret = fit;
			found = true;
		}
	}
	return found;
}

/* Takes from lists[cnt] all that fit lists[ref] and makes them a group. */
static int take_group(const struct job *job, struct arena *arena, struct match_list *lists,
		      size_t cnt, bool *taken, double *scratch, match_groups *out,
		      uint64_t *unmatched)
{
	struct match_group group = { 0 };
	const struct match_list *ref = NULL;
	double interval;

	for (size_t i = 0; i < cnt; i++) {
		if (!taken[i] && (ref == NULL || lists[i].cnt > ref->cnt))
			ref = &lists[i];
	}
	if (ref == NULL)
		return 0;
	interval = mean_interval_ns(job, ref);
	group.members = arena_calloc(arena, cnt, sizeof(*group.members));
	if (group.members == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct fit fit = { 0 };
		bool fits;

		if (taken[i])
			continue;
		fits = &lists[i] == ref || best_fit(job, ref, &lists[i], scratch, &fit);
		if (fits && fit.pair_cnt > 2 && !at(job, ref, 0)->group_known)
			fits = fit.spread_ns <= RESIDUAL_SHARE * interval;
		if (!fits)
			continue;
		taken[i] = true;
		lists[i].shift = fit.shift;
		lists[i].offset_ns = fit.offset_ns;
		group.members[group.member_cnt++] = lists[i];
		group.first = MIN(group.first, fit.shift);
		group.last = MAX(group.last, fit.shift + (int64_t)lists[i].cnt - 1);
	}
	if (group.member_cnt < 2) {
		*unmatched += ref->cnt;
		return 1;
	}
	return vec_push(out, group) < 0 ? -ENOMEM : 1;
}

static int add_groups(const struct job *job, struct arena *arena, struct match_list *lists,
		      size_t cnt, match_groups *out, uint64_t *unmatched)
{
	_cleanup_free_ bool *taken = calloc(cnt + 1, sizeof(*taken));
	_cleanup_free_ double *scratch = NULL;
	size_t longest = 0;
	int ret = 1;

	for (size_t i = 0; i < cnt; i++)
		longest = MAX(longest, lists[i].cnt);
	scratch = calloc(longest + 1, sizeof(*scratch));
	if (taken == NULL || scratch == NULL)
		return -ENOMEM;
	while (ret > 0)
		ret = take_group(job, arena, lists, cnt, taken, scratch, out, unmatched);
	return ret;
}

/* The collectives of one group hash on every worker that has some. */
static int lists_of(const struct job *job, struct arena *arena, uint64_t group,
		    struct match_list **ret, size_t *ret_cnt)
{
	struct match_list *lists = arena_calloc(arena, job->worker_cnt, sizeof(*lists));
	size_t cnt = 0;

	if (lists == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;
		struct match_list *list = &lists[cnt];

		*list = (struct match_list){ .worker = w };
		for (uint32_t i = 0; i < fp->collective_cnt; i++)
			list->cnt += fp->collectives[i].group == group;
		if (list->cnt == 0)
			continue;
		list->idx = arena_calloc(arena, list->cnt, sizeof(uint32_t));
		if (list->idx == NULL)
			return -ENOMEM;
		for (uint32_t i = 0, k = 0; i < fp->collective_cnt; i++) {
			if (fp->collectives[i].group == group)
				list->idx[k++] = i;
		}
		cnt++;
	}
	*ret = lists;
	*ret_cnt = cnt;
	return 0;
}

bool match_overlaps(const struct job *job, const struct match_group *group, int64_t instance)
{
	for (size_t m = 0; m < group->member_cnt; m++) {
		const struct fp_collective *c = match_borrow(job, &group->members[m], instance);
		const struct fp_collective *before =
			match_borrow(job, &group->members[m], instance - 1);

		if (c != NULL && before != NULL && c->start_ns < before->start_ns + before->dur_ns)
			return true;
	}
	return false;
}

int match_find(const struct job *job, struct arena *arena, match_groups *ret,
	       uint64_t *ret_unmatched)
{
	struct idmap seen = { 0 };
	match_groups out = { 0 };
	uint64_t unmatched = 0;
	int error = 0;

	for (size_t w = 0; w < job->worker_cnt && error == 0; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		for (size_t i = 0; i < fp->collective_cnt && error == 0; i++) {
			uint64_t group = fp->collectives[i].group;
			struct match_list *lists;
			size_t cnt;

			if (idmap_get(&seen, group) != IDMAP_NONE)
				continue;
			error = idmap_set(&seen, group, 1);
			if (error == 0)
				error = lists_of(job, arena, group, &lists, &cnt);
			if (error == 0)
				error = add_groups(job, arena, lists, cnt, &out, &unmatched);
		}
	}
	idmap_done(&seen);
	if (error < 0) {
		vec_done(&out);
		return error;
	}
	*ret = out;
	*ret_unmatched = unmatched;
	return 0;
}
