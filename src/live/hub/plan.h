/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One order for all workers: the step at which all can still begin, and how
 * many iterations fill the window. All profile the same iterations, so that
 * their collectives can be matched.
 * Source: ARCHITECTURE.md, "Processes of a live job" (the order).
 */
#pragma once

#include "live/hostd/sharedblock.h"
#include "live/link/wire.h"

#define PLAN_STEPS_MIN 5u
#define PLAN_MARGIN_STEPS 2u
/* Short iterations: as many as take so long. The recorder has room for their operators. */
#define PLAN_LEAST_NS (150 * NSEC_PER_MSEC)
#define PLAN_MARGIN_NS (400 * NSEC_PER_MSEC) /* states are up to 100 ms old */

struct plan_limits {
	int64_t window_ns;  /* desired length */
	uint64_t steps_max; /* iterations, beyond PLAN_LEAST_NS: bounds the size of a trace */
};

/*
 * states[cnt]: the workers; those with PHASE_GONE or PHASE_SILENT are ignored. Returns 0, or
 * -EAGAIN while no worker's iteration time is known. ret->id is left alone.
 */
_must_check_ int plan_order(const struct wire_state *states, size_t cnt,
			    const struct plan_limits *limits, struct order_plan *ret);
