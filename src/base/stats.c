/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"

#include <math.h>

static int double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_quantile(double *values, size_t cnt, double quantile)
{
	double pos, below;
	size_t idx;

	if (cnt == 0)
		return 0;
	qsort(values, cnt, sizeof(*values), double_cmp);
	pos = quantile * (double)(cnt - 1);
	below = floor(pos);
	idx = (size_t)below;
	if (idx + 1 >= cnt)
		return values[cnt - 1];
	return values[idx] + (pos - below) * (values[idx + 1] - values[idx]);
}

double stats_median(double *values, size_t cnt)
{
	return stats_quantile(values, cnt, 0.5);
}

double stats_mad(double *values, size_t cnt, double center)
{
	for (size_t i = 0; i < cnt; i++)
		values[i] = fabs(values[i] - center);
	return stats_median(values, cnt);
}

/* --- all but one --- */

struct stats_others stats_others_of(double *values, size_t cnt)
{
	struct stats_others ret = { .cnt = cnt };
	size_t middle = cnt / 2;

	if (cnt == 0)
		return ret;
	qsort(values, cnt, sizeof(*values), double_cmp);
	ret.middle = values[middle];
	ret.below = values[middle > 0 ? middle - 1 : 0];
	ret.above = values[MIN(middle + 1, cnt - 1)];
	return ret;
}

double stats_others_median(const struct stats_others *others, double value)
{
	double two[2];

	if (others->cnt < 2)
		return 0;
	if (others->cnt % 2 == 0)
		return value <= others->below ? others->middle : others->below;
	two[0] = value < others->middle ? others->middle : others->below;
	two[1] = value > others->middle ? others->middle : others->above;
	return stats_median(two, ARRAY_SIZE(two));
}

/* --- without sorting --- */

#define FEW 16 /* up to this size insertion sort is faster */

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

static void sort_few(double *values, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		double v = values[i];
		size_t k = i;

		for (; k > 0 && values[k - 1] > v; k--)
			values[k] = values[k - 1];
		values[k] = v;
	}
}

static double middle_of_three(double a, double b, double c)
{
	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Hoare partition: smaller values first. Returns the index of the first value >= pivot. */
static size_t partition(double *values, size_t cnt, double pivot)
{
	size_t i = 0, k = cnt - 1;

	for (;;) {
		while (values[i] < pivot)
			i++;
		while (values[k] > pivot)
			k--;
		if (i >= k)
			return k + 1;
		swap(&values[i++], &values[k--]);
	}
}

/*
 * Quickselect (Hoare): puts the value of sorted index idx there, smaller values before it, larger
 * ones behind it. Falls back to qsort() after 64 bad pivots.
 */
static void select_at(double *values, size_t cnt, size_t idx)
{
	unsigned int left = 64;

	while (cnt > FEW && left-- > 0) {
		double pivot = middle_of_three(values[0], values[cnt / 2], values[cnt - 1]);
		size_t split = partition(values, cnt, pivot);

		if (idx < split) {
			cnt = split;
		} else {
			values += split;
			cnt -= split;
			idx -= split;
		}
	}
	if (cnt > FEW)
		qsort(values, cnt, sizeof(*values), double_cmp);
	else
		sort_few(values, cnt);
}

static double smallest(const double *values, size_t cnt)
{
	double low = values[0];

	for (size_t i = 1; i < cnt; i++)
		low = values[i] < low ? values[i] : low;
	return low;
}

double stats_middle(double *values, size_t cnt)
{
	size_t idx = (cnt - 1) / 2;

	if (cnt == 0)
		return 0;
	select_at(values, cnt, idx);
	if (cnt % 2 == 1)
		return values[idx];
	return values[idx] + 0.5 * (smallest(values + idx + 1, cnt - idx - 1) - values[idx]);
}
