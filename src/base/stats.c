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
