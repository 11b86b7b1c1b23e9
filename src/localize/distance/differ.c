/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/distance/differ.h"

#include "base/splitmix.h"
#include "base/stats.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static double max_of(double a, double b)
{
	return isnan(b) ? a : fmax(a, b);
}

/* Eq. 8: each dimension divided by its maximum; a dimension that is 0 everywhere stays 0. */
static void normalize(const struct differ_point *points, size_t cnt, struct differ_point *out)
{
	struct differ_point top = { 0, 0, 0 };

	for (size_t i = 0; i < cnt; i++) {
		top.beta = max_of(top.beta, points[i].beta);
		top.mu = max_of(top.mu, points[i].mu);
		top.sigma = max_of(top.sigma, points[i].sigma);
	}
	for (size_t i = 0; i < cnt; i++) {
		out[i].beta = top.beta > 0 ? points[i].beta / top.beta : points[i].beta;
		out[i].mu = top.mu > 0 ? points[i].mu / top.mu : points[i].mu;
		out[i].sigma = top.sigma > 0 ? points[i].sigma / top.sigma : points[i].sigma;
	}
}

static double apart(double a, double b)
{
	return isnan(a) || isnan(b) ? 0 : fabs(a - b);
}

/* Eq. 10: 1 when the Manhattan distance reaches delta. */
static bool differs(const struct differ_point *a, const struct differ_point *b)
{
	return apart(a->beta, b->beta) + apart(a->mu, b->mu) + apart(a->sigma, b->sigma) >=
	       DIFFER_DELTA;
}

void differ_draw(uint32_t *idx, size_t cnt, size_t want, uint64_t seed)
{
	for (size_t i = 0; i < cnt; i++)
		idx[i] = (uint32_t)i;
	for (size_t i = 0; i < want && want < cnt; i++) {
		size_t k = i + (size_t)(splitmix_next(&seed) % (cnt - i));
		uint32_t swap = idx[i];

		idx[i] = idx[k];
		idx[k] = swap;
	}
}

int differ_find(const struct differ_point *points, size_t cnt, const struct differ_options *options,
		double *ret_delta, double *ret_threshold)
{
	_cleanup_free_ struct differ_point *norm = calloc(cnt + 1, sizeof(*norm));
	_cleanup_free_ uint32_t *peers = calloc(cnt + 1, sizeof(*peers));
	_cleanup_free_ double *scratch = calloc(cnt + 1, sizeof(*scratch));
	size_t want = options->exact ? cnt : MIN(cnt, (size_t)DIFFER_PEERS);
	double median;

	if (norm == NULL || peers == NULL || scratch == NULL)
		return -ENOMEM;
	normalize(points, cnt, norm);
	differ_draw(peers, cnt, want, options->seed);
	for (size_t i = 0; i < cnt; i++) {
		size_t differ_cnt = 0;

		for (size_t k = 0; k < want; k++)
			differ_cnt += differs(&norm[i], &norm[peers[k]]);
		ret_delta[i] = want > 0 ? (double)differ_cnt / (double)want : 0;
	}
	memcpy(scratch, ret_delta, cnt * sizeof(*scratch));
	median = stats_median(scratch, cnt);
	*ret_threshold = median + DIFFER_K * stats_mad(scratch, cnt, median);
	return 0;
}
