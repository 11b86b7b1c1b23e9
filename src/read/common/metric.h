/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of counters and what they measure. Names differ by tool and chip: CUPTI
 * ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed"), Nsight ("SMs Active
 * [Throughput %]"), our own collectors (resource_name()).
 */
#pragma once

#include "model/event.h"

struct metric {
	enum resource resource; /* RESOURCE_OTHER: unknown, values stay as they are */
	double scale;		/* multiply by it to get 0..1 */
};

/* Case does not matter. A known name without a stated unit counts as percent. */
struct metric metric_find(const char *name);
