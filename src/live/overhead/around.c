/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/around.h"

#include "base/clock.h"

#include <math.h>

/* The time around a window is cut into pieces of at least this length; at most so many are kept. */
#define PIECE_NS (500 * NSEC_PER_MSEC)
#define PIECES_MAX 20u

/* Least standard error: marks are read only ten times a second. */
#define ERROR_MIN 0.001

/* Half the interval in standard errors: those are from few pieces, which depend on each other. */
#define SURE 3.0

struct window_cost {
	double frac, error_frac; /* one standard error */
};

static void pace_break(struct around_pace *pace)
{
	pace->from_ns = 0;
}

/* ns: time of the worker's latest mark, when it had counted `step` steps. */
static void pace_add(struct around_pace *pace, uint64_t step, int64_t ns)
{
	double steps = (double)(step - pace->from_step), took_ns = (double)(ns - pace->from_ns);

	if (pace->from_ns > 0 && (step <= pace->from_step || ns - pace->from_ns < PIECE_NS))
		return;
	if (pace->from_ns > 0) {
		pace->cnt++;
		pace->steps += steps;
		pace->ns += took_ns;
		pace->steps_steps += steps * steps;
		pace->steps_ns += steps * took_ns;
		pace->ns_ns += took_ns * took_ns;
	}
	pace->from_step = step;
	pace->from_ns = ns;
}

static struct around_pace pace_sum(const struct around_pace *a, const struct around_pace *b)
{
	return (struct around_pace){ .cnt = a->cnt + b->cnt,
				     .steps = a->steps + b->steps,
				     .ns = a->ns + b->ns,
				     .steps_steps = a->steps_steps + b->steps_steps,
				     .steps_ns = a->steps_ns + b->steps_ns,
				     .ns_ns = a->ns_ns + b->ns_ns };
}

/* The time of a step and its standard error, as a ratio of sums; false: too few pieces. */
static bool pace_estimate(const struct around_pace *pace, double *ret_ns, double *ret_error_ns)
{
	double cnt = (double)pace->cnt, ns, rest;

	if (pace->cnt < AROUND_PIECES_MIN)
		return false;
	ns = pace->ns / pace->steps;
	rest = pace->ns_ns - 2 * ns * pace->steps_ns + ns * ns * pace->steps_steps;
	*ret_ns = ns;
	*ret_error_ns = sqrt(fmax(rest, 0) * cnt / (cnt - 1)) / pace->steps;
	return true;
}

/* The difference between the pace before and after the window is part of the error. */
static bool compare_around(const struct around *around, struct window_cost *ret)
{
	struct around_pace before = pace_sum(&around->earlier, &around->before);
	double before_ns, inside_ns, after_ns, errors_ns[3], around_ns, drift_ns, error_ns;

	if (!pace_estimate(&before, &before_ns, &errors_ns[0]) ||
	    !pace_estimate(&around->inside, &inside_ns, &errors_ns[1]) ||
	    !pace_estimate(&around->after, &after_ns, &errors_ns[2]))
		return false;
	around_ns = (before_ns + after_ns) / 2;
	drift_ns = (before_ns - after_ns) / 2;
	error_ns = sqrt(errors_ns[0] * errors_ns[0] / 4 + errors_ns[1] * errors_ns[1] +
			errors_ns[2] * errors_ns[2] / 4 + drift_ns * drift_ns);
	*ret = (struct window_cost){ .frac = inside_ns / around_ns - 1,
				     .error_frac = fmax(error_ns / around_ns, ERROR_MIN) };
	return true;
}

static void roll_before(struct around *around)
{
	if (around->before.cnt < PIECES_MAX / 2)
		return;
	around->earlier = around->before;
	around->before = (struct around_pace){ .from_step = around->before.from_step,
					       .from_ns = around->before.from_ns };
}

static void add_window(struct around *around, const struct window_cost *cost)
{
	around->window_cnt++;
	around->frac_sum += cost->frac;
	around->error_square_sum += cost->error_frac * cost->error_frac;
}

/* Returns true when the time after a window is long enough and gave a cost. */
static bool end_after(struct around *around)
{
	size_t wanted = MIN(MAX(around->inside.cnt, AROUND_PIECES_MIN), PIECES_MAX / 2);
	struct window_cost cost;
	bool compared;

	if (around->after.cnt < wanted)
		return false;
	compared = compare_around(around, &cost);
	if (compared)
		add_window(around, &cost);
	around->stage = AROUND_BEFORE;
	around->earlier = around->after;
	around->before = (struct around_pace){ 0 };
	return compared;
}

static void begin_inside(struct around *around)
{
	around->stage = AROUND_INSIDE;
	around->inside = around->after = (struct around_pace){ 0 };
	pace_break(&around->before);
}

static bool follow_around(struct around *around, const struct wire_state *state, bool usual)
{
	struct around_pace *pace = around->stage == AROUND_AFTER ? &around->after : &around->before;

	if (state->phase == PHASE_PROFILING) {
		if (around->stage != AROUND_INSIDE)
			begin_inside(around);
		pace_add(&around->inside, state->step, state->last_ns);
		return false;
	}
	if (around->stage == AROUND_INSIDE) {
		around->stage = AROUND_AFTER;
		pace = &around->after;
	}
	if (!usual) {
		pace_break(pace);
		return false;
	}
	pace_add(pace, state->step, state->last_ns);
	if (around->stage == AROUND_AFTER)
		return end_after(around);
	roll_before(around);
	return false;
}

bool around_watch(struct around *around, const struct wire_state *states, size_t cnt, bool usual)
{
	size_t first = 0;

	while (first < cnt && !wire_is_watched(&states[first]))
		first++;
	if (around->off || first == cnt)
		return false;
	if (states[first].worker != around->worker || states[first].step < around->step)
		*around = (struct around){ .worker = states[first].worker,
					   .window_cnt = around->window_cnt,
					   .frac_sum = around->frac_sum,
					   .error_square_sum = around->error_square_sum };
	around->step = states[first].step;
	return follow_around(around, &states[first], usual);
}

void around_clear(struct around *around)
{
	around->window_cnt = 0;
	around->frac_sum = around->error_square_sum = 0.0;
}

struct wire_cost around_cost(const struct around *around)
{
	double cnt = around->window_cnt, frac, half;

	if (around->window_cnt == 0)
		return (struct wire_cost){ 0 };
	frac = around->frac_sum / cnt;
	half = SURE * sqrt(around->error_square_sum) / cnt;
	return (struct wire_cost){ .frac = frac,
				   .low_frac = frac - half,
				   .high_frac = frac + half,
				   .pair_cnt = around->window_cnt };
}
