/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a simulated worker: the utilization of a resource, period by period. */
#pragma once

#include "base/base.h"

#define DEVICE_PERIOD_NS (100 * NSEC_PER_USEC) /* of GPU counters */

struct counter {
	int64_t start_ns, period_ns;
	double *busy_ns; /* by period */
	size_t cnt;
};

/* Periods that cover [start, end). Returns 0 or -ENOMEM; counter_done() is fine after either. */
_must_check_ int counter_init(struct counter *counter, int64_t start_ns, int64_t end_ns,
			      int64_t period_ns);
void counter_done(struct counter *counter);

/* The resource was used at util_frac from start to end; time outside the periods is ignored. */
void counter_add(struct counter *counter, int64_t start_ns, int64_t end_ns, double util_frac);

/* Utilization in a period, at most 1. */
static inline double counter_at(const struct counter *counter, size_t idx)
{
	double value = counter->busy_ns[idx] / (double)counter->period_ns;

	return value < 1 ? value : 1;
}
