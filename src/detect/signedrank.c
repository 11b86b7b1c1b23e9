/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/signedrank.h"

#include <errno.h>
#include <math.h>

/* Up to so many differences the distribution of the statistic is computed, beyond it is normal. */
#define EXACT_MAX 40u
#define EXACT_SUM (EXACT_MAX * (EXACT_MAX + 1) / 2)

/* A quantile is exact to this part of the differences' range. */
#define PRECISION 1e-12

static int double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint64_t walsh_cnt(size_t cnt)
{
	return (uint64_t)cnt * (cnt + 1) / 2;
}

/* probs[v]: of the statistic v, the sum of those ranks 1..cnt whose coin shows heads. */
static void exact_distribution(size_t cnt, double probs[static EXACT_SUM + 1])
{
	size_t top = 0;

	probs[0] = 1.0;
	for (size_t rank = 1; rank <= cnt; rank++) {
		for (size_t v = top + 1; v <= top + rank; v++)
			probs[v] = 0.0;
		top += rank;
		for (size_t v = top + 1; v-- > 0;)
			probs[v] = 0.5 * (probs[v] + (v >= rank ? probs[v - rank] : 0.0));
	}
}

/* How many Walsh averages are outside on each side, at most; false: even 0 would be too many. */
static bool exact_outside(size_t cnt, double tail, uint64_t *ret)
{
	double probs[EXACT_SUM + 1], sum = 0.0;
	uint64_t v = 0;

	exact_distribution(cnt, probs);
	while (sum + probs[v] <= tail)
		sum += probs[v++];
	if (v == 0)
		return false;
	*ret = v; /* the statistic is below v with a probability of at most `tail` */
	return true;
}

/* The quantile of the standard normal distribution: Newton's method on erfc(). */
static double normal_quantile(double tail)
{
	double z = 2.0;

	for (unsigned i = 0; i < 50; i++) {
		double density = exp(-z * z / 2.0) / sqrt(2.0 * M_PI);
		double step = (0.5 * erfc(z / M_SQRT2) - tail) / density;

		z += step;
		if (fabs(step) < 1e-12)
			break;
	}
	return z;
}

static bool outside(size_t cnt, double tail, uint64_t *ret)
{
	double n = (double)cnt, mean = n * (n + 1.0) / 4.0, below;

	if (cnt <= EXACT_MAX)
		return exact_outside(cnt, tail, ret);
	below = mean - normal_quantile(tail) * sqrt(n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
	if (below < 1.0)
		return false;
	*ret = (uint64_t)below;
	return true;
}

/* How many Walsh averages of sorted values are at most x: two indexes that meet. */
static uint64_t count_up_to(const double *values, size_t cnt, double x)
{
	uint64_t sum = 0;
	size_t end = cnt; /* values[end..] are too large beside values[i] */

	for (size_t i = 0; i < cnt; i++) {
		while (end > i && 0.5 * (values[i] + values[end - 1]) > x)
			end--;
		if (end <= i)
			break;
		sum += end - i;
	}
	return sum;
}

/* The Walsh average with `position` others before it, by bisection. */
static double walsh_at(const double *values, size_t cnt, uint64_t position)
{
	double low = values[0], high = values[cnt - 1], enough = PRECISION * (high - low);

	if (count_up_to(values, cnt, low) > position)
		return low;
	while (high - low > enough) {
		double middle = low + 0.5 * (high - low);

		if (middle <= low || middle >= high)
			break;
		if (count_up_to(values, cnt, middle) > position)
			high = middle;
		else
			low = middle;
	}
	return high;
}

int signedrank_interval(double *diffs, size_t cnt, double confidence, struct signedrank *ret)
{
	uint64_t total = walsh_cnt(cnt), out;

	if (cnt == 0 || cnt > SIGNEDRANK_MAX || !outside(cnt, 0.5 * (1.0 - confidence), &out))
		return -ENODATA;
	qsort(diffs, cnt, sizeof(*diffs), double_cmp);
	ret->center =
		0.5 * (walsh_at(diffs, cnt, (total - 1) / 2) + walsh_at(diffs, cnt, total / 2));
	ret->low = walsh_at(diffs, cnt, out - 1);
	ret->high = walsh_at(diffs, cnt, total - out);
	return 0;
}
