/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/slices.h"

#include "base/stats.h"
#include "format/shared/block.h"

#include <errno.h>
#include <math.h>

int slices_begin(struct slices *slices, const struct slices_plan *plan)
{
	if (plan->stride == 0 || plan->slice_steps < 2 * (uint64_t)plan->stride ||
	    plan->slice_steps % plan->stride != 0 || plan->slice_cnt < 2 ||
	    plan->slice_cnt % 2 != 0 || plan->slice_cnt > SLICES_MAX)
		return -EINVAL;
	*slices = (struct slices){ .plan = *plan };
	return 0;
}

static void note_end(struct slice *slice, uint64_t step, int64_t time_ns)
{
	if (slice->first_step == 0 || step <= slice->last_step)
		return;
	slice->last_step = step;
	slice->last_ns = time_ns;
}

/* A mark ends one iteration and begins the next: at a bound it counts for both slices. */
void slices_mark(struct slices *slices, uint64_t step, int64_t time_ns)
{
	const struct slices_plan *plan = &slices->plan;
	uint64_t slice, position;

	if (step < plan->start_step || (step - plan->start_step) % plan->stride != 0)
		return;
	slice = (step - plan->start_step) / plan->slice_steps;
	position = (step - plan->start_step) % plan->slice_steps;
	if (position == 0 && slice > 0 && slice <= plan->slice_cnt)
		note_end(&slices->slices[slice - 1], step, time_ns);
	slices->over |= slice >= plan->slice_cnt;
	if (position == 0 || slice >= plan->slice_cnt)
		return;
	if (slices->slices[slice].first_step == 0) {
		slices->slices[slice].first_step = slices->slices[slice].last_step = step;
		slices->slices[slice].first_ns = slices->slices[slice].last_ns = time_ns;
	}
	note_end(&slices->slices[slice], step, time_ns);
}

/* Mean time of an iteration, ns; 0 when the slice has none. */
static double slice_mean(const struct slice *slice)
{
	if (slice->last_step <= slice->first_step || slice->last_ns <= slice->first_ns)
		return 0.0;
	return ((double)slice->last_ns - (double)slice->first_ns) /
	       (double)(slice->last_step - slice->first_step);
}

/* NAN unless both slices are complete. */
static double pair_of(const struct slices *slices, size_t pair)
{
	bool first_on = overhead_slice_is_on(slices->plan.seed, 2 * pair);
	double first = slice_mean(&slices->slices[2 * pair]);
	double second = slice_mean(&slices->slices[2 * pair + 1]);

	if (first <= 0.0 || second <= 0.0)
		return (double)NAN;
	return first_on ? log(first / second) : log(second / first);
}

size_t slices_pairs(const struct slices *slices, double ret[static SLICES_PAIRS_MAX])
{
	size_t cnt = slices->plan.slice_cnt / 2;

	for (size_t i = 0; i < cnt; i++)
		ret[i] = pair_of(slices, i);
	return cnt;
}

/* By how much the first iteration of slice i is longer than its others; NAN if that is unknown. */
static double switching_of(const struct slices *slices, size_t i)
{
	const struct slice *before = &slices->slices[i - 1], *slice = &slices->slices[i];
	double mean = slice_mean(slice);
	uint64_t bound = slices->plan.start_step + i * slices->plan.slice_steps;

	if (mean <= 0.0 || before->last_step != bound ||
	    slice->first_step != bound + slices->plan.stride)
		return (double)NAN;
	return (double)slice->first_ns - (double)before->last_ns - mean * slices->plan.stride;
}

double slices_switching_ns(const struct slices *slices)
{
	double extras[SLICES_MAX];
	size_t cnt = 0, switches = 0;

	for (size_t i = 1; i < slices->plan.slice_cnt; i++) {
		double extra;

		if (overhead_slice_is_on(slices->plan.seed, i) ==
		    overhead_slice_is_on(slices->plan.seed, i - 1))
			continue;
		switches++;
		extra = switching_of(slices, i);
		if (!isnan(extra))
			extras[cnt++] = extra;
	}
	return stats_median(extras, cnt) * (double)switches;
}
