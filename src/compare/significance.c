/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/significance.h"

#include <math.h>

#define FRACTION_STEPS 300
#define FRACTION_TINY 1e-300
#define FRACTION_EXACT 1e-14

struct estimate estimate_of(const double *values, size_t cnt)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i];
	mean /= (double)cnt;
	for (size_t i = 0; i < cnt; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return (struct estimate){ mean, squares / (double)(cnt - 1) / (double)cnt,
				  (double)(cnt - 1) };
}

static double not_zero(double x)
{
	return fabs(x) < FRACTION_TINY ? FRACTION_TINY : x;
}

/* One step of Lentz's evaluation with the coefficient d. */
static double lentz(double *front, double *back, double d)
{
	*back = 1 / not_zero(1 + d * *back);
	*front = not_zero(1 + d / *front);
	return *front * *back;
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22). */
static double beta_fraction(double a, double b, double x)
{
	double front = 1, back = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = back;

	for (int m = 1; m <= FRACTION_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), factor;

		value *= lentz(&front, &back, even);
		factor = lentz(&front, &back, odd);
		value *= factor;
		if (fabs(factor - 1) < FRACTION_EXACT)
			break;
	}
	return value;
}

/* The regularized incomplete beta function I_x(a, b). */
static double beta_regularized(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Two-sided tail of Student's t. */
static double student_tail(double t, double freedom)
{
	return beta_regularized(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double significance_welch(struct estimate a, struct estimate b)
{
	double variance = a.variance + b.variance, delta = b.mean - a.mean, freedom = 0;

	if (variance <= 0)
		return delta != 0 ? 0 : (double)NAN;
	if (a.variance > 0)
		freedom += a.variance * a.variance / a.freedom;
	if (b.variance > 0)
		freedom += b.variance * b.variance / b.freedom;
	freedom = variance * variance / freedom;
	return student_tail(delta / sqrt(variance), freedom);
}

double significance_paired(const double *before, const double *after, size_t cnt)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += (after[i] - before[i]) / (double)cnt;
	for (size_t i = 0; i < cnt; i++)
		squares += (after[i] - before[i] - mean) * (after[i] - before[i] - mean);
	return significance_welch((struct estimate){ 0 },
				  (struct estimate){ mean,
						     squares / (double)(cnt - 1) / (double)cnt,
						     (double)(cnt - 1) });
}

static int p_cmp(const void *a, const void *b, void *p)
{
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const double *values = p;

	if (values[i] != values[k])
		return values[i] < values[k] ? -1 : 1;
	return (i > k) - (i < k);
}

void significance_adjust(const double *p, size_t cnt, size_t *order, double *q)
{
	double least = 1;
	size_t tested = 0;

	for (size_t i = 0; i < cnt; i++) {
		q[i] = (double)NAN;
		if (!isnan(p[i]))
			order[tested++] = i;
	}
	/* qsort_r() takes a non-const argument; p_cmp() only reads it. */
	qsort_r(order, tested, sizeof(*order), p_cmp, (void *)(uintptr_t)p);
	for (size_t i = tested; i > 0; i--) {
		least = MIN(least, p[order[i - 1]] * (double)tested / (double)i);
		q[order[i - 1]] = least;
	}
}
