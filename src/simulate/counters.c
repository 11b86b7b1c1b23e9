/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/counters.h"

#include <errno.h>

int counter_init(struct counter *counter, int64_t start_ns, int64_t end_ns, int64_t period_ns)
{
	*counter = (struct counter){ .start_ns = start_ns, .period_ns = period_ns };
	counter->cnt = (size_t)((end_ns - start_ns + period_ns - 1) / period_ns);
	counter->busy_ns = calloc(counter->cnt + 1, sizeof(*counter->busy_ns));
	return counter->busy_ns != NULL ? 0 : -ENOMEM;
}

void counter_done(struct counter *counter)
{
	free(counter->busy_ns);
	*counter = (struct counter){ 0 };
}

void counter_add(struct counter *counter, int64_t start_ns, int64_t end_ns, double util_frac)
{
	int64_t now = MAX(start_ns - counter->start_ns, (int64_t)0),
		end = end_ns - counter->start_ns;

	while (now < end) {
		size_t idx = (size_t)(now / counter->period_ns);
		int64_t until = MIN((int64_t)(idx + 1) * counter->period_ns, end);

		if (idx >= counter->cnt)
			return;
		counter->busy_ns[idx] += util_frac * (double)(until - now);
		now = until;
	}
}
