/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/utilise.h"

#include "summarize/critdur.h"

#include <errno.h>
#include <math.h>

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

static void add_run(const double *values, size_t cnt, double length_ns, struct utilise_sum *sum)
{
	double mean = 0, var = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i];
	mean /= (double)cnt;
	for (size_t i = 0; i < cnt; i++)
		var += (values[i] - mean) * (values[i] - mean);
	sum->weight_ns += length_ns;
	sum->mean_ns += length_ns * mean;
	sum->std_ns += length_ns * sqrt(var / (double)cnt);
}

int utilise_add(const struct track *track, int64_t start_ns, int64_t end_ns,
		struct utilise_scratch *scratch, struct utilise_sum *sum)
{
	struct critdur run = { 0 };
	size_t first = first_after(track, start_ns), cnt;
	int error;

	scratch->values.cnt = 0;
	for (size_t i = first; i < track->cnt; i++) {
		error = vec_push(&scratch->values, clamp01(track->samples[i].value));
		if (error < 0)
			return error;
		if (track->samples[i].time_ns >= end_ns)
			break;
	}
	cnt = scratch->values.cnt;
	if (cnt == 0 || end_ns <= start_ns)
		return 0;
	error = critdur_find(scratch->values.data, cnt, &run);
	if (error < 0)
		return error;
	if (run.begin == run.end)
		run = (struct critdur){ 0, cnt };
	add_run(scratch->values.data + run.begin, run.end - run.begin,
		(double)(end_ns - start_ns) * (double)(run.end - run.begin) / (double)cnt, sum);
	return 0;
}

double utilise_mu(const struct utilise_sum *sum)
{
	return sum->weight_ns > 0 ? sum->mean_ns / sum->weight_ns : (double)NAN;
}

double utilise_sigma(const struct utilise_sum *sum)
{
	return sum->weight_ns > 0 ? sum->std_ns / sum->weight_ns : (double)NAN;
}

const struct track *utilise_find_track(const struct trace *trace, enum resource resource,
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
