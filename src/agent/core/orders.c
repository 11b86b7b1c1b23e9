/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/orders.h"

#define load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)

/*
 * Copies an order that is new; 0 is none. The daemon may write the next one meanwhile, so
 * the id is read again behind the fields; an unequal one is left for the next mark.
 */
static bool window_take(struct window *window, struct order *order, uint64_t step)
{
	uint64_t id = atomic_load_explicit(&order->id, memory_order_acquire);
	struct window taken = { .state = WINDOW_WAITING, .seen_id = id };

	if (id == 0 || id == window->seen_id)
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
	*window = taken;
	return true;
}

static int window_wait(struct window *window, uint64_t step, int64_t now_ns)
{
	if (step < window->start_step)
		return AGENT_NONE;
	if (step > window->start_step) {
		window->missed_id = window->seen_id;
		window->state = WINDOW_NONE;
		return AGENT_NONE;
	}
	window->state = WINDOW_OPEN;
	window->begin_step = step;
	window->begin_ns = now_ns;
	return AGENT_BEGIN;
}

static bool window_is_over(const struct window *window, uint64_t iterations, int64_t now_ns)
{
	if (window->max_steps != 0 && iterations >= window->max_steps)
		return true;
	return now_ns - window->begin_ns >= window->length_ns && iterations >= window->min_steps;
}

static int window_watch(struct window *window, bool canceled, uint64_t step, int64_t now_ns)
{
	uint64_t marks = step - window->begin_step;

	if (!canceled && marks % window->stride != 0)
		return AGENT_NONE;
	if (!canceled && !window_is_over(window, marks / window->stride, now_ns))
		return AGENT_BOUND;
	window->state = WINDOW_CLOSING;
	window->end_ns = now_ns;
	return AGENT_END;
}

int window_mark(struct window *window, struct order *order, uint64_t step, int64_t now_ns)
{
	bool canceled;

	if (window->state == WINDOW_NONE || window->state == WINDOW_WAITING)
		(void)window_take(window, order, step);
	if (window->state == WINDOW_NONE || window->state == WINDOW_CLOSING)
		return AGENT_NONE;
	/* A flag that belongs to a newer order doesn't end this one: its id is greater. */
	canceled =
		load_relaxed(&order->canceled) != 0 && load_relaxed(&order->id) == window->seen_id;
	if (window->state == WINDOW_OPEN)
		return window_watch(window, canceled, step, now_ns);
	if (canceled) {
		window->state = WINDOW_NONE;
		return AGENT_NONE;
	}
	return window_wait(window, step, now_ns);
}

void window_finish(struct window *window)
{
	window->state = WINDOW_NONE;
}
