/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/chance.h"

#include "model/thresholds.h"

#include <math.h>

double chance_own_loss(const struct blame *blame, uint32_t w)
{
	return fmax(0, blame->workers[w].lost_ns - blame->workers[w].explained_by_comm_ns);
}

/* The largest loss of the other workers in an iteration. */
static double worst_other(const struct blame *blame, uint32_t w, size_t iteration)
{
	const struct blame_worst *worst = &blame->worst[iteration];

	return worst->most_ns > 0 && worst->worker == w ? worst->second_ns : worst->most_ns;
}

bool chance_explains(const struct job *job, const struct blame *blame, uint32_t w)
{
	size_t cnt = job->workers[w].fp->iteration_cnt;
	double sum = 0, square = 0, need, mean, variance;

	for (size_t i = 0; i < cnt; i++) {
		double lead = blame->workers[w].iteration_lost_ns[i] - worst_other(blame, w, i);

		sum += lead;
		square += lead * lead;
	}
	if (cnt < 2)
		return false;
	/* Of few iterations the scatter itself is uncertain (Student's t). */
	need = BLAME_SPREAD_SURE * (1 + 16 / pow((double)cnt - 1, 2));
	mean = sum / (double)cnt;
	variance = fmax(0, square / (double)cnt - mean * mean) * (double)cnt / (double)(cnt - 1);
	return mean <= 0 || mean * mean * (double)cnt < need * need * variance;
}
