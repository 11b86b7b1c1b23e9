/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "cmd/jobfiles/jobfiles_parts.h"
#include "collective/shifts.h"
#include "model/thresholds.h"

#include <errno.h>

typedef VEC(double) difference_vec;

/* How much later each collective of a group ends on the second member than on the first. */
static int collect_differences(const struct shift_group *group, difference_vec *ret)
{
	ret->cnt = 0;
	for (int64_t k = group->first; k <= group->last; k++) {
		const struct fp_collective *a = shift_borrow(&group->members[0], k);
		const struct fp_collective *b = shift_borrow(&group->members[1], k);

		if (a == NULL || b == NULL)
			continue;
		if (vec_push(ret, (double)(b->start_ns + b->dur_ns - a->start_ns - a->dur_ns)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The sum of the deviations of differences, without the worst ones; *ret_cnt: how many. */
static double sum_deviations(const difference_vec *differences, size_t *ret_cnt)
{
	size_t cnt = differences->cnt, kept = cnt - cnt / SHIFT_WORST;
	double sum = 0;

	(void)stats_mad(differences->data, cnt, stats_median(differences->data, cnt));
	for (size_t i = 0; i < kept; i++)
		sum += differences->data[i];
	*ret_cnt = kept;
	return sum;
}

int jobfiles_meet(const struct fingerprint *a, const struct fingerprint *b)
{
	const struct shift_worker workers[] = { { a->collectives, a->collective_cnt },
						{ b->collectives, b->collective_cnt } };
	difference_vec differences = { 0 };
	shift_groups groups = { 0 };
	struct arena arena;
	uint64_t unmatched;
	double sum_ns = 0;
	size_t sum_cnt = 0;
	int error;

	arena_init(&arena);
	error = shifts_find(workers, 2, &arena, &groups, &unmatched);
	for (size_t g = 0; g < groups.cnt && error == 0; g++) {
		size_t cnt = 0;

		error = collect_differences(&groups.data[g], &differences);
		if (error == 0 && differences.cnt > 0)
			sum_ns += sum_deviations(&differences, &cnt);
		sum_cnt += cnt;
	}
	vec_done(&differences);
	vec_done(&groups);
	arena_done(&arena);
	if (error < 0)
		return error;
	return sum_cnt >= JOBFILES_MEET_CNT && sum_ns <= JOBFILES_MEET_NS * (double)sum_cnt;
}
