/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "cmd/jobfiles/jobfiles_parts.h"
#include "collective/shifts.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

/* One collective on two ranks. */
struct common {
	double time_ns;	      /* of its end, on the first */
	double difference_ns; /* how much later it ends on the second */
};

typedef VEC(struct common) common_vec;

/* later: collectives by which the second is taken to be behind what fits best. */
static int collect(const struct shift_group *group, int64_t later, common_vec *ret)
{
	ret->cnt = 0;
	for (int64_t k = group->first; k <= group->last; k++) {
		const struct fp_collective *a = shift_borrow(&group->members[0], k);
		const struct fp_collective *b = shift_borrow(&group->members[1], k + later);
		double end_ns;

		if (a == NULL || b == NULL)
			continue;
		end_ns = (double)(a->start_ns + a->dur_ns);
		if (vec_push(ret, (struct common){ end_ns, (double)(b->start_ns + b->dur_ns) -
								   end_ns }) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* By how much the second clock is faster: the later half of the collectives against the earlier. */
static double drift_of(const common_vec *commons, double *scratch)
{
	size_t half = commons->cnt / 2, rest = commons->cnt - half;
	double differ, times;

	if (commons->cnt < JOBFILES_MEET_CNT)
		return 0;
	for (size_t i = 0; i < commons->cnt; i++)
		scratch[i] = commons->data[i].difference_ns;
	differ = stats_median(scratch + half, rest) - stats_median(scratch, half);
	for (size_t i = 0; i < commons->cnt; i++)
		scratch[i] = commons->data[i].time_ns;
	times = stats_median(scratch + half, rest) - stats_median(scratch, half);
	return times > 0 && fabs(differ) <= JOBFILES_DRIFT * times ? differ / times : 0;
}

/*
 * Sums the deviations of the differences, without the worst ones. *drift of the clocks: NAN is
 * replaced by what the differences say. Returns 0 or -ENOMEM.
 */
static int sum_deviations(const common_vec *commons, double *drift, struct jobfiles_meeting *ret)
{
	size_t cnt = commons->cnt, kept = cnt - cnt / SHIFT_WORST;
	_cleanup_free_ double *scratch = calloc(cnt + 1, sizeof(*scratch));

	*ret = (struct jobfiles_meeting){ 0 };
	if (scratch == NULL)
		return -ENOMEM;
	if (cnt == 0)
		return 0;
	if (isnan(*drift))
		*drift = drift_of(commons, scratch);
	for (size_t i = 0; i < cnt; i++)
		scratch[i] = commons->data[i].difference_ns - *drift * commons->data[i].time_ns;
	(void)stats_mad(scratch, cnt, stats_median(scratch, cnt));
	for (size_t i = 0; i < kept; i++)
		ret->sum_ns += scratch[i];
	ret->cnt = kept - 1; /* the first one agrees with itself */
	return 0;
}

static bool fits(const struct jobfiles_meeting *meeting)
{
	return meeting->cnt >= JOBFILES_MEET_CNT &&
	       meeting->sum_ns <= JOBFILES_MEET_NS * (double)meeting->cnt;
}

/*
 * Whether no other shift fits nearly as well. Two runs of one job have the same rhythm: there an
 * iteration more or less makes no difference. Returns 1, 0 or -ENOMEM.
 */
static int is_clear(const struct shift_group *group, double drift,
		    const struct jobfiles_meeting *best)
{
	int64_t furthest = (group->last - group->first) / 2;
	common_vec commons = { 0 };
	int ret = 1;

	for (int64_t later = -furthest; later <= furthest && ret == 1; later++) {
		struct jobfiles_meeting other;

		ret = later == 0 ? 1 : collect(group, later, &commons);
		if (later == 0 || ret < 0)
			continue;
		ret = sum_deviations(&commons, &drift, &other);
		if (ret == 0)
			ret = other.cnt < JOBFILES_MEET_CNT ||
			      other.sum_ns * (double)best->cnt >
				      JOBFILES_CLEARER * best->sum_ns * (double)other.cnt;
	}
	vec_done(&commons);
	return ret;
}

/* Adds one group. A guessed group says nothing if it does not fit: it need not be one. */
static int add_group(const struct shift_group *group, common_vec *scratch,
		     struct jobfiles_meeting *meeting)
{
	const struct fp_collective *first = &group->members[0].all[group->members[0].idx[0]];
	struct jobfiles_meeting one;
	double drift = (double)NAN;
	int ret = collect(group, 0, scratch);

	if (ret == 0)
		ret = sum_deviations(scratch, &drift, &one);
	if (ret < 0)
		return ret;
	meeting->sum_ns += one.sum_ns;
	meeting->cnt += one.cnt;
	if (!fits(&one))
		return 0;
	ret = is_clear(group, drift, &one);
	meeting->unclear |= ret == 0;
	meeting->guess_fits |= ret == 1 && !first->group_known;
	return MIN(ret, 0);
}

bool jobfiles_share_group(const struct fingerprint *a, const struct fingerprint *b)
{
	for (size_t i = 0; i < a->collective_cnt; i++) {
		const struct fp_collective *c = &a->collectives[i];

		if (!c->group_known || (i > 0 && c->group == c[-1].group))
			continue;
		for (size_t k = 0; k < b->collective_cnt; k++) {
			if (b->collectives[k].group == c->group && b->collectives[k].group_known)
				return true;
		}
	}
	return false;
}

int jobfiles_meet(const struct fingerprint *a, const struct fingerprint *b,
		  struct jobfiles_meeting *meeting)
{
	const struct shift_worker workers[] = { { a->collectives, a->collective_cnt },
						{ b->collectives, b->collective_cnt } };
	common_vec scratch = { 0 };
	shift_groups groups = { 0 };
	struct arena arena;
	uint64_t unmatched;
	int error;

	arena_init(&arena);
	error = shifts_find(workers, 2, &arena, &groups, &unmatched);
	for (size_t g = 0; g < groups.cnt && error == 0; g++)
		error = add_group(&groups.data[g], &scratch, meeting);
	vec_done(&scratch);
	vec_done(&groups);
	arena_done(&arena);
	return error;
}

bool jobfiles_met(const struct jobfiles_meeting *meeting)
{
	return meeting->guess_fits || (fits(meeting) && !meeting->unclear);
}
