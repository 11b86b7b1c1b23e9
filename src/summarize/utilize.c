/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/utilize.h"

#include "summarize/critdur.h"

#include <errno.h>
#include <math.h>
#include <sys/types.h>

#define MOST 0.5 /* of the time: then the deviation is assumed to hold for the rest */
#define AROUND 4 /* number of distances on each side used for the period of samples */
#define LATE 2	 /* times the usual distance: a sample covers at most this time before it */

/* First sample that ends after a time. */
static size_t first_after(const struct track *track, int64_t time_ns)
{
	size_t low = 0, high = track->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (track->samples[mid].time_ns > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static double clamp01(double value)
{
	return value >= 0 ? (value <= 1 ? value : 1) : 0;
}

/* Period of samples around an interval that touches cnt samples from first; 0: unknown. */
static double period_ns(const struct track *track, size_t first, size_t cnt)
{
	size_t begin = first > 0 ? first - 1 : 0, end = MAX(first + cnt, begin + 2);

	if (end > track->cnt)
		return 0;
	return ((double)track->samples[end - 1].time_ns - (double)track->samples[begin].time_ns) /
	       (double)(end - 1 - begin);
}

/*
 * Whether samples are fine enough: one sample, or parts of two that include neighboring executions,
 * have no meaningful deviation.
 */
static bool has_deviation(const struct track *track, size_t first, size_t cnt, double length_ns,
			  const struct critdur *run)
{
	double period = period_ns(track, first, cnt);

	return run->end - run->begin > 1 && period > 0 && length_ns >= period;
}

/* Adds the mean of values[cnt]; returns their deviation. */
static double add_run(const double *values, size_t cnt, double length_ns, struct utilize_sum *sum)
{
	double mean = 0, var = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i];
	mean /= (double)cnt;
	for (size_t i = 0; i < cnt; i++)
		var += (values[i] - mean) * (values[i] - mean);
	sum->weight_ns += length_ns;
	sum->mean_ns += length_ns * mean;
	return sqrt(var / (double)cnt);
}

/* Difference of sorted times. */
static uint64_t between_ns(int64_t start_ns, int64_t end_ns)
{
	return (uint64_t)end_ns - (uint64_t)start_ns;
}

/*
 * The median distance of samples near idx; 0: it is alone. Only nearby samples count, as a track
 * may have fine samples at one time and coarse ones at another.
 */
static uint64_t usual_distance_ns(const struct track *track, size_t idx)
{
	size_t begin = idx > AROUND ? idx - AROUND : 1, end = MIN(idx + AROUND + 1, track->cnt);
	uint64_t sorted[2 * AROUND + 1];
	size_t cnt = 0;

	for (size_t i = begin; i < end; i++) {
		uint64_t distance =
			between_ns(track->samples[i - 1].time_ns, track->samples[i].time_ns);
		size_t at = cnt++;

		for (; at > 0 && sorted[at - 1] > distance; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = distance;
	}
	return cnt > 0 ? sorted[(cnt - 1) / 2] : 0;
}

/*
 * The start of the time that a sample covers. Device samplers pause and start late; samples of the
 * host are growths of counters since the previous sample, however long ago.
 */
static int64_t covers_from_ns(const struct track *track, size_t idx)
{
	int64_t before_ns = idx > 0 ? track->samples[idx - 1].time_ns : INT64_MIN;
	int64_t time_ns = track->samples[idx].time_ns;
	uint64_t usual_ns = track->device >= 0 ? usual_distance_ns(track, idx) : 0;

	return usual_ns > 0 && between_ns(before_ns, time_ns) / LATE > usual_ns
		       ? (int64_t)((uint64_t)time_ns - LATE * usual_ns)
		       : before_ns;
}

/*
 * Puts the samples that cover part of an interval into scratch, starting at first. Returns their
 * number, or -ENOMEM; *ret_ns: the time that they cover.
 */
static ssize_t touched(const struct track *track, size_t first, int64_t start_ns, int64_t end_ns,
		       struct utilize_scratch *scratch, double *ret_ns)
{
	uint64_t sum_ns = 0;

	scratch->values.cnt = 0;
	for (size_t i = first; i < track->cnt; i++) {
		int64_t from_ns = MAX(covers_from_ns(track, i), start_ns);
		int64_t until_ns = MIN(track->samples[i].time_ns, end_ns);

		if (from_ns < until_ns) {
			if (vec_push(&scratch->values, clamp01(track->samples[i].value)) < 0)
				return -ENOMEM;
			sum_ns += between_ns(from_ns, until_ns);
		}
		if (track->samples[i].time_ns >= end_ns)
			break;
	}
	*ret_ns = (double)sum_ns;
	return (ssize_t)scratch->values.cnt;
}

int utilize_add(const struct track *track, int64_t start_ns, int64_t end_ns,
		struct utilize_scratch *scratch, struct utilize_sum *sum)
{
	struct critdur run = { 0 };
	size_t first = first_after(track, start_ns);
	double whole_ns, length_ns, deviation;
	ssize_t cnt = touched(track, first, start_ns, end_ns, scratch, &whole_ns);
	int error;

	if (cnt <= 0)
		return cnt < 0 ? -ENOMEM : 0;
	error = critdur_find(scratch->values.data, (size_t)cnt, &run);
	if (error < 0)
		return error;
	if (run.begin == run.end)
		run = (struct critdur){ 0, (size_t)cnt };
	length_ns = whole_ns * (double)(run.end - run.begin) / (double)cnt;
	deviation = add_run(scratch->values.data + run.begin, run.end - run.begin, length_ns, sum);
	if (has_deviation(track, first, (size_t)cnt, whole_ns, &run)) {
		sum->resolved_ns += length_ns;
		sum->std_ns += length_ns * deviation;
	}
	return 0;
}

double utilize_mu(const struct utilize_sum *sum)
{
	return sum->weight_ns > 0 ? sum->mean_ns / sum->weight_ns : (double)NAN;
}

double utilize_sigma(const struct utilize_sum *sum)
{
	return sum->resolved_ns > 0 && sum->resolved_ns >= MOST * sum->weight_ns
		       ? sum->std_ns / sum->resolved_ns
		       : (double)NAN;
}

const struct track *utilize_find_track(const struct trace *trace, enum resource resource,
				       int64_t device, int64_t tid)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		const struct track *t = &trace->tracks[i];

		if (t->resource == resource && t->cnt > 0 && (device < 0 || t->device == device) &&
		    (tid < 0 || t->tid == tid))
			return t;
	}
	return NULL;
}
