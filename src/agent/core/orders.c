/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/orders.h"

#define load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)

/*
 * Copies a new order (id 0: no order). The daemon may write the next order at the same time, so the
 * id is read again after the fields; if it changed, the order is left for the next mark.
 */
static bool orders_take(struct orders *orders, struct order *order, uint64_t step, int64_t now_ns)
{
	uint64_t id = atomic_load_explicit(&order->id, memory_order_acquire);
	struct orders taken = {
		.state = ORDERS_WAITING, .seen_id = id, .taken_step = step, .taken_ns = now_ns
	};

	if (id == 0 || id == orders->seen_id)
		return false;
	taken.start_step = load_relaxed(&order->start_step);
	taken.length_ns = (int64_t)(load_relaxed(&order->window_ns) & INT64_MAX);
	taken.min_steps = load_relaxed(&order->min_steps);
	taken.max_steps = load_relaxed(&order->max_steps);
	taken.stride = MAX(load_relaxed(&order->stride), 1u);
	taken.source = load_relaxed(&order->source);
	taken.sample_hz = load_relaxed(&order->sample_hz);
	taken.exact = load_relaxed(&order->exact) != 0;
	if (taken.start_step == 0)
		taken.start_step = step;
	atomic_thread_fence(memory_order_acquire);
	if (load_relaxed(&order->id) != id)
		return false;
	*orders = taken;
	return true;
}

static int orders_wait(struct orders *orders, uint64_t step, int64_t now_ns)
{
	if (step < orders->start_step)
		return AGENT_NONE;
	if (step > orders->start_step) {
		orders->missed_id = orders->seen_id;
		orders->state = ORDERS_NONE;
		return AGENT_NONE;
	}
	orders->state = ORDERS_OPEN;
	orders->begin_step = step;
	orders->begin_ns = now_ns;
	if (step > orders->taken_step)
		orders->pace_ns = (now_ns - orders->taken_ns) * (int64_t)orders->stride /
				  (int64_t)(step - orders->taken_step);
	return AGENT_BEGIN;
}

static bool costs_too_much(const struct orders *orders, uint64_t iterations, int64_t now_ns)
{
	double whole_ns = (double)orders->pace_ns * (double)orders->max_steps;

	return orders->costly && orders->pace_ns > 0 && iterations >= ORDERS_COSTLY_STEPS &&
	       now_ns - orders->begin_ns >= ORDERS_COSTLY_NS &&
	       (double)(now_ns - orders->begin_ns) >= ORDERS_COSTLY_FACTOR * whole_ns;
}

static bool orders_is_over(const struct orders *orders, uint64_t iterations, int64_t now_ns)
{
	if (orders->max_steps != 0 && iterations >= orders->max_steps)
		return true;
	if (costs_too_much(orders, iterations, now_ns))
		return true;
	return now_ns - orders->begin_ns >= orders->length_ns && iterations >= orders->min_steps;
}

static int orders_watch(struct orders *orders, bool canceled, uint64_t step, int64_t now_ns)
{
	uint64_t marks = step - orders->begin_step;

	if (!canceled && marks % orders->stride != 0)
		return AGENT_NONE;
	if (!canceled && !orders_is_over(orders, marks / orders->stride, now_ns))
		return AGENT_BOUND;
	orders->state = ORDERS_CLOSING;
	orders->end_ns = now_ns;
	return AGENT_END;
}

int orders_mark(struct orders *orders, struct order *order, uint64_t step, int64_t now_ns)
{
	bool canceled;

	if (orders->state == ORDERS_NONE || orders->state == ORDERS_WAITING)
		(void)orders_take(orders, order, step, now_ns);
	if (orders->state == ORDERS_NONE || orders->state == ORDERS_CLOSING)
		return AGENT_NONE;
	/* A flag that belongs to a newer order, whose id is greater, doesn't end this one. */
	canceled =
		load_relaxed(&order->canceled) != 0 && load_relaxed(&order->id) == orders->seen_id;
	if (orders->state == ORDERS_OPEN)
		return orders_watch(orders, canceled, step, now_ns);
	if (canceled) {
		orders->state = ORDERS_NONE;
		return AGENT_NONE;
	}
	return orders_wait(orders, step, now_ns);
}

void orders_finish(struct orders *orders)
{
	orders->state = ORDERS_NONE;
}
