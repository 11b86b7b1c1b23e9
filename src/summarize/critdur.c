/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/critdur.h"

#include <errno.h>

/*
 * The best run for a gap limit: runs are split wherever more than gap consecutive zeros occur, and
 * trimmed to their nonzero ends. Returns whether a run holds the required sum; at most one can,
 * since the sum is more than half of the total.
 */
static bool run_with_gap(const double *util_frac, size_t cnt, size_t gap, double want,
			 struct critdur *ret)
{
	size_t begin = 0, last = 0, zeros = 0;
	double sum = 0;
	bool open = false;

	for (size_t i = 0; i <= cnt; i++) {
		bool zero = i == cnt || util_frac[i] <= 0;

		if (zero && i < cnt)
			zeros++;
		if (open && (i == cnt || zeros > gap)) {
			if (sum >= want) {
				*ret = (struct critdur){ begin, last + 1 };
				return true;
			}
			open = false;
		}
		if (zero)
			continue;
		if (!open) {
			open = true;
			begin = i;
			sum = 0;
		}
		zeros = 0;
		last = i;
		sum += util_frac[i];
	}
	return false;
}

int critdur_find(const double *util_frac, size_t sample_cnt, struct critdur *ret)
{
	struct critdur best = { 0, 0 };
	size_t low = 0, high = sample_cnt;
	double total = 0;

	for (size_t i = 0; i < sample_cnt; i++) {
		if (!(util_frac[i] >= 0 && util_frac[i] <= 1))
			return -EINVAL;
		total += util_frac[i];
	}
	if (total <= 0) {
		*ret = best;
		return 0;
	}
	/* A larger gap never loses the run, so a binary search finds the smallest one. */
	while (low < high) {
		size_t gap = low + (high - low) / 2;

		if (run_with_gap(util_frac, sample_cnt, gap, CRITDUR_SHARE * total, &best))
			high = gap;
		else
			low = gap + 1;
	}
	(void)run_with_gap(util_frac, sample_cnt, low, CRITDUR_SHARE * total, &best);
	*ret = best;
	return 0;
}
