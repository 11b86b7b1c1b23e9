/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/slices.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

/* Standard error of the median of a normal sample, in standard errors of its mean. */
#define MEDIAN_ERROR 1.2533

int slices_begin(struct slices *slices, const struct slices_plan *plan)
{
	if (plan->stride == 0 || plan->slice_steps < 2 * (uint64_t)plan->stride ||
	    plan->slice_steps % plan->stride != 0 || plan->slice_cnt < 3 ||
	    plan->slice_cnt > SLICES_MAX)
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

/* The ratio of slice i, which is "on", to its complete neighbors; NAN without. */
static double pair_cost(const struct slices *slices, size_t i)
{
	double on = slice_mean(&slices->slices[i]), sum = 0.0;
	size_t cnt = 0;

	for (size_t j = i - 1; j <= i + 1 && j < slices->plan.slice_cnt; j += 2) {
		double off = slice_mean(&slices->slices[j]);

		sum += off;
		cnt += off > 0.0;
	}
	return on > 0.0 && cnt > 0 ? on / (sum / (double)cnt) - 1.0 : (double)NAN;
}

int slices_cost(const struct slices *slices, struct slices_cost *ret)
{
	double pairs[SLICES_MAX / 2], deviation;
	size_t cnt = 0;

	for (size_t i = 1; i < slices->plan.slice_cnt; i += 2) {
		double cost = pair_cost(slices, i);

		if (!isnan(cost))
			pairs[cnt++] = cost;
	}
	if (cnt < SLICES_PAIRS_MIN)
		return -ENODATA;
	ret->frac = stats_median(pairs, cnt);
	deviation = STATS_MAD_TO_SD * stats_mad(pairs, cnt, ret->frac);
	ret->error_frac = MAX(MEDIAN_ERROR * deviation / sqrt((double)cnt), SLICES_ERROR_FRAC_MIN);
	ret->pair_cnt = cnt;
	return 0;
}

void slices_combine(struct slices_cost *sum, const struct slices_cost *other)
{
	double a, b;

	if (sum->pair_cnt == 0) {
		*sum = *other;
		return;
	}
	a = 1.0 / (sum->error_frac * sum->error_frac);
	b = 1.0 / (other->error_frac * other->error_frac);
	sum->frac = (a * sum->frac + b * other->frac) / (a + b);
	sum->error_frac = 1.0 / sqrt(a + b);
	sum->pair_cnt += other->pair_cnt;
}
