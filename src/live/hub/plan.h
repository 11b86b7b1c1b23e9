/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One order for all workers: the step at which all can still begin, and how
 * many iterations fill the window. All profile the same iterations, so that
 * their collectives can be matched. Workers that do not wait for one another
 * (Hogwild, one model a process) are soon at different steps: each of them
 * begins at its next one, so that the windows are of the same time.
 * Source: ARCHITECTURE.md, "Processes of a live job" (the order).
 */
#pragma once

#include "live/hostd/sharedblock.h"
#include "live/link/wire.h"

#define PLAN_STEPS_MIN 5u
#define PLAN_MARGIN_STEPS 2u
/* Short iterations: as many as take so long. The recorder has room for their operators. */
#define PLAN_LEAST_NS (150 * NSEC_PER_MSEC)
/* From the moment of the order, until all workers have read it; doubles with each late order. */
#define PLAN_MARGIN_NS (800 * NSEC_PER_MSEC)
#define PLAN_LATE_MAX 3u
/* Workers of which the last is as far behind the first, in iterations and in time, are apart. */
#define PLAN_APART_STEPS 32u
#define PLAN_APART_NS (5 * NSEC_PER_SEC)
/* A state of another host is a second old, and some time on its way. */
#define PLAN_AGE_MAX_NS (2 * NSEC_PER_SEC)

struct plan_limits {
	int64_t window_ns;  /* desired length */
	uint64_t steps_max; /* iterations, beyond PLAN_LEAST_NS: bounds the size of a trace */
	int64_t now_ns; /* of the order: the workers have gone on since their states were made */
	unsigned late;	/* orders that came too late for a worker; PLAN_LATE_MAX at most count */
};

/* The step at now_ns, by the worker's pace. One that is blocked has not gone on: to a limit. */
uint64_t plan_step_now(const struct wire_state *state, int64_t now_ns);

/* How far ahead of the workers a window begins. */
int64_t plan_margin_ns(unsigned late);

/*
 * states[cnt]: the workers; those with PHASE_GONE or PHASE_SILENT are ignored. Returns 0, or
 * -EAGAIN while no worker's iteration time is known. ret->id is left alone.
 */
_must_check_ int plan_order(const struct wire_state *states, size_t cnt,
			    const struct plan_limits *limits, struct order_plan *ret);
