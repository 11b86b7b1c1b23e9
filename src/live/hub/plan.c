/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/plan.h"

#include <errno.h>

/* Extremes over all workers. step: the greatest, now; behind_ns: until all others reach it. */
struct extremes {
	uint64_t step;
	int64_t step_ns_min, step_ns_max, behind_ns;
	uint32_t stride;
};

int64_t plan_margin_ns(unsigned late)
{
	return PLAN_MARGIN_NS << MIN(late, PLAN_LATE_MAX);
}

uint64_t plan_step_now(const struct wire_state *state, int64_t now_ns)
{
	int64_t age_ns = MIN(now_ns - state->last_ns, PLAN_AGE_MAX_NS);

	if (state->step_ns <= 0 || age_ns <= 0)
		return state->step;
	return state->step + (uint64_t)(age_ns / state->step_ns);
}

static void extremes_add(struct extremes *e, const struct wire_state *state, int64_t now_ns)
{
	e->step = MAX(e->step, plan_step_now(state, now_ns));
	e->stride = MAX(e->stride, state->stride);
	if (state->step_ns <= 0)
		return;
	e->step_ns_max = MAX(e->step_ns_max, state->step_ns);
	if (e->step_ns_min == 0 || state->step_ns < e->step_ns_min)
		e->step_ns_min = state->step_ns;
}

/* After the greatest step is known. */
static void extremes_add_behind(struct extremes *e, const struct wire_state *state, int64_t now_ns)
{
	uint64_t behind = e->step - plan_step_now(state, now_ns);
	int64_t behind_ns;

	if (state->step_ns <= 0 || behind <= (uint64_t)PLAN_APART_STEPS * e->stride)
		return;
	if (__builtin_mul_overflow((int64_t)MIN(behind, (uint64_t)INT64_MAX), state->step_ns,
				   &behind_ns))
		behind_ns = INT64_MAX;
	e->behind_ns = MAX(e->behind_ns, behind_ns);
}

int plan_order(const struct wire_state *states, size_t cnt, const struct plan_limits *limits,
	       struct order_plan *ret)
{
	struct extremes e = { .stride = 1 };
	uint64_t margin, steps, least;
	int64_t iteration_ns;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			extremes_add(&e, &states[i], limits->now_ns);
	}
	if (e.step_ns_min == 0)
		return -EAGAIN;
	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			extremes_add_behind(&e, &states[i], limits->now_ns);
	}
	/* The fastest worker gets to the step first: the margin is in its time. */
	margin = (uint64_t)(plan_margin_ns(limits->late) / e.step_ns_min) + 1;
	margin = MAX(margin, (uint64_t)PLAN_MARGIN_STEPS * e.stride);
	/* Whole iterations only: the window begins where one begins. */
	margin = (margin + e.stride - 1) / e.stride * e.stride;
	iteration_ns = e.step_ns_max * (int64_t)e.stride;
	least = MAX((uint64_t)(PLAN_LEAST_NS / iteration_ns), (uint64_t)PLAN_STEPS_MIN);
	steps = MAX((uint64_t)(limits->window_ns / iteration_ns), (uint64_t)PLAN_STEPS_MIN);
	steps = MIN(steps, MAX(limits->steps_max, least));
	ret->start_step = (e.step + e.stride - 1) / e.stride * e.stride + margin;
	ret->apart = e.behind_ns > PLAN_APART_NS;
	ret->window_ns = (uint64_t)limits->window_ns;
	ret->steps = steps;
	ret->stride = e.stride;
	return 0;
}
