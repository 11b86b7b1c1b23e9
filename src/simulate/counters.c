/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/counters.h"

#include <errno.h>

int sampler_init(struct sampler *sampler, int64_t start_ns, int64_t end_ns, int64_t period_ns)
{
	*sampler = (struct sampler){ .start_ns = start_ns, .period_ns = period_ns };
	sampler->cnt = (size_t)((end_ns - start_ns + period_ns - 1) / period_ns);
	sampler->busy_ns = calloc(sampler->cnt + 1, sizeof(*sampler->busy_ns));
	return sampler->busy_ns != NULL ? 0 : -ENOMEM;
}

void sampler_done(struct sampler *sampler)
{
	free(sampler->busy_ns);
	*sampler = (struct sampler){ 0 };
}

void sampler_add(struct sampler *sampler, int64_t start_ns, int64_t end_ns, double util_frac)
{
	int64_t now = MAX(start_ns - sampler->start_ns, (int64_t)0),
		end = end_ns - sampler->start_ns;

	while (now < end) {
		size_t idx = (size_t)(now / sampler->period_ns);
		int64_t until = MIN((int64_t)(idx + 1) * sampler->period_ns, end);

		if (idx >= sampler->cnt)
			return;
		sampler->busy_ns[idx] += util_frac * (double)(until - now);
		now = until;
	}
}
