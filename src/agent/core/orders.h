/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a worker's window begins and ends, from the order in the shared block, the step and
 * the time at each iteration mark. Pure: no clock, no system call, so that tests drive it.
 *
 * All workers begin at the same step; a worker past that step reports that it missed the order
 * instead of profiling other iterations.
 * Source: ARCHITECTURE.md, "Processes of a live job" (the order).
 */
#pragma once

#include "agent/core/agent.h"
#include "format/shared/block.h"

enum orders_state {
	ORDERS_NONE,	/* no order, or the order is finished */
	ORDERS_WAITING, /* the order's step is ahead */
	ORDERS_OPEN,	/* between AGENT_BEGIN and AGENT_END */
	ORDERS_CLOSING, /* after AGENT_END, until orders_finish */
};

struct orders {
	enum orders_state state;
	uint64_t seen_id;   /* the newest order accepted: each is carried out at most once */
	uint64_t missed_id; /* set when an order came too late; the caller reports and clears it */
	uint64_t start_step, min_steps, max_steps, stride;
	uint64_t begin_step;	    /* step at which the window opened */
	uint32_t source, sample_hz; /* enum order_source; 0: the default */
	bool exact;
	bool costly; /* the source slows the job down: set by the caller once the window is open */
	uint64_t taken_step; /* when the order came */
	int64_t taken_ns;
	int64_t pace_ns; /* per iteration, from then to the window's begin; 0: unknown */
	int64_t length_ns;
	int64_t begin_ns, end_ns;
};

/*
 * torch.profiler traces each call of Python, which can make iterations many times as long. Such a
 * window ends early, with the iterations that it has, but not before the least.
 */
#define ORDERS_COSTLY_FACTOR 2.5
#define ORDERS_COSTLY_STEPS 5u
#define ORDERS_COSTLY_NS (3 * NSEC_PER_SEC)

/* Checks the order at an iteration mark. Returns enum agent_action. O(1). */
int orders_mark(struct orders *orders, struct order *order, uint64_t step, int64_t now_ns);

/* After the window was reported, or couldn't be opened: ready for the next order. */
void orders_finish(struct orders *orders);
