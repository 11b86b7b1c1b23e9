/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/overhead.h"

#include "base/stats.h"
#include "format/shared/block.h"
#include "live/hub/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Iterations after which a job counts as steady. */
#define STEADY_CNT 20u

/* A measurement is canceled if the least step does not change for so many iterations. */
#define PATIENCE_STEPS 8
#define PATIENCE_NS (5 * NSEC_PER_SEC)

/* A measurement is canceled if its slices take so many times the expected time. */
#define SLOWER 4
#define LONGEST_NS (24 * 3600 * NSEC_PER_SEC)

/* Significance in standard errors: three, because the error from few pairs is often too small. */
#define SURE 3.0

/* Consecutive measurements that alone made the job look slow; a single one may be chance. */
#define SLOWED_MAX 2

/* The time around a window is cut into pieces of at least this length; at most so many are kept. */
#define PIECE_NS (500 * NSEC_PER_MSEC)
#define PIECES_MAX 20u

/* Greatest standard error of a cost from windows alone that is reported without slices. */
#define AROUND_ERROR_MAX 0.05

/* Least standard error: marks are read only ten times a second. */
#define AROUND_ERROR_MIN 0.001

/* After a measurement without a result, or with too large an error. */
#define RETRY_NS (60 * NSEC_PER_SEC)

static const struct overhead_shape {
	int64_t slice_ns;    /* desired length */
	uint64_t steps_min;  /* of a slice */
	uint64_t slice_cnt;  /* odd: the first and the last slice are without the collectors */
	int64_t interval_ns; /* until the next measurement of this kind */
} shapes[] = {
	[OVERHEAD_ALWAYS] = { 1 * NSEC_PER_SEC, 5, 21, 600 * NSEC_PER_SEC },
	[OVERHEAD_WINDOW] = { 300 * NSEC_PER_MSEC, 5, 13, 3600 * NSEC_PER_SEC },
};

void overhead_init(struct overhead *overhead, const struct run_options *options)
{
	*overhead =
		(struct overhead){ .off = options->no_audit, .recent_cnt = options->recent_cnt };
	overhead->budget_frac[OVERHEAD_ALWAYS] = options->budget_always_frac;
	overhead->budget_frac[OVERHEAD_WINDOW] = options->budget_window_frac;
	/* Slices cannot measure torch.profiler's cost: it stops the job. */
	if (options->source == ORDER_SOURCE_TORCH)
		overhead->series[OVERHEAD_WINDOW].due_ns = INT64_MAX;
	overhead->around_off = options->no_audit || options->source == ORDER_SOURCE_TORCH;
}

void overhead_done(struct overhead *overhead)
{
	free(overhead->results);
	overhead->results = NULL;
}

static size_t count_living(const struct wire_state *states, size_t cnt)
{
	size_t living = 0;

	for (size_t i = 0; i < cnt; i++)
		living += wire_is_watched(&states[i]);
	return living;
}

static bool steady(const struct wire_state *states, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]) &&
		    (states[i].phase != PHASE_STEADY || states[i].iterations < STEADY_CNT))
			return false;
	}
	return count_living(states, cnt) > 0;
}

/* OVERHEAD_WINDOW goes first: it takes seconds, and the next report needs it. */
static int next_kind(const struct overhead *overhead, int64_t now_ns, uint32_t *ret)
{
	static const uint32_t order[] = { OVERHEAD_WINDOW, OVERHEAD_ALWAYS };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (now_ns >= overhead->series[order[i]].due_ns) {
			*ret = order[i];
			return 0;
		}
	}
	return -1;
}

/* The least step of the watched workers; 0 without any. */
static uint64_t least_step(const struct wire_state *states, size_t cnt)
{
	uint64_t step = UINT64_MAX;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			step = MIN(step, states[i].step);
	}
	return step != UINT64_MAX ? step : 0;
}

/* Where the steps differ by more than the start is ahead, slices wouldn't be at one time. */
static bool in_step(const struct wire_state *states, size_t cnt, uint64_t start_step)
{
	uint64_t least = least_step(states, cnt), greatest = least;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			greatest = MAX(greatest, states[i].step);
	}
	return greatest - least <= start_step - greatest;
}

static int64_t slowest_step_ns(const struct wire_state *states, size_t cnt)
{
	int64_t longest_ns = 1;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			longest_ns = MAX(longest_ns, states[i].step_ns);
	}
	return longest_ns;
}

static unsigned begin(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		      int64_t now_ns, struct wire_slices *order)
{
	const struct plan_limits limits = { .window_ns = NSEC_PER_SEC, .steps_max = 1 };
	struct order_plan plan = { 0 };
	int64_t step_ns = slowest_step_ns(states, cnt);
	uint64_t steps;

	if (plan_order(states, cnt, &limits, &plan) < 0 || !in_step(states, cnt, plan.start_step))
		return OVERHEAD_NOTHING;
	free(overhead->results);
	overhead->results = calloc(cnt, sizeof(*overhead->results));
	if (overhead->results == NULL)
		return OVERHEAD_NOTHING;
	overhead->result_cnt = overhead->reported_cnt = 0;
	overhead->worker_cnt = count_living(states, cnt);
	overhead->running = true;
	overhead->step_ns = now_ns;
	overhead->patience_ns = MAX(PATIENCE_STEPS * step_ns, PATIENCE_NS);
	steps = (uint64_t)((shapes[overhead->kind].slice_ns + step_ns - 1) / step_ns);
	/* Whole iterations: the marks within one may be unevenly spaced. */
	steps = MAX((steps + plan.stride - 1) / plan.stride, shapes[overhead->kind].steps_min);
	*order = (struct wire_slices){ .id = ++overhead->id,
				       .kind = overhead->kind,
				       .start_step = plan.start_step,
				       .slice_steps = steps * plan.stride,
				       .slice_cnt = shapes[overhead->kind].slice_cnt,
				       .stride = plan.stride };
	steps = order->start_step - overhead->step + order->slice_steps * order->slice_cnt;
	overhead->limit_ns =
		now_ns + overhead->patience_ns +
		(int64_t)MIN(SLOWER * (double)steps * (double)step_ns, (double)LONGEST_NS);
	return OVERHEAD_SEND;
}

/*
 * The step from which no detector's average includes iterations of the slices that end now:
 * adds the iterations of an average, and those until the worker has read the order.
 */
static uint64_t find_calm(const struct overhead *overhead, const struct wire_state *states,
			  size_t cnt)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct wire_state *state = &states[i];
		uint64_t own = (uint64_t)(overhead->recent_cnt + 2) * MAX(state->stride, 1u);

		if (!wire_is_watched(state))
			continue;
		if (state->step_ns > 0)
			own += (uint64_t)(PLAN_MARGIN_NS / state->step_ns);
		steps = MAX(steps, own);
	}
	return least_step(states, cnt) + steps;
}

static unsigned end(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		    struct wire_slices *order)
{
	overhead->running = false;
	if (overhead->kind == OVERHEAD_WINDOW)
		overhead->calm_step = find_calm(overhead, states, cnt);
	*order = (struct wire_slices){ .id = ++overhead->id, .kind = overhead->kind };
	return OVERHEAD_SEND;
}

/*
 * The median cost: workers wait for each other, so all measure the same cost, and their number
 * does not reduce the error. pair_cnt 0: no worker had pairs, or out of memory.
 */
static struct slices_cost middle(const struct overhead *overhead)
{
	struct slices_cost ret = { .pair_cnt = SIZE_MAX };
	double *values = calloc(overhead->result_cnt + 1, sizeof(*values));

	if (values == NULL || overhead->result_cnt == 0) {
		free(values);
		return (struct slices_cost){ 0 };
	}
	for (size_t i = 0; i < overhead->result_cnt; i++) {
		values[i] = overhead->results[i].frac;
		ret.pair_cnt = MIN(ret.pair_cnt, overhead->results[i].pair_cnt);
	}
	ret.frac = stats_median(values, overhead->result_cnt);
	for (size_t i = 0; i < overhead->result_cnt; i++)
		values[i] = overhead->results[i].error_frac;
	ret.error_frac = stats_median(values, overhead->result_cnt);
	free(values);
	return ret;
}

/* Switches one more collector off; false: all of this kind are off. */
static bool back_off(struct overhead *overhead, uint32_t kind)
{
	static const uint32_t steps[][2] = {
		[OVERHEAD_ALWAYS] = { BACKOFF_ALWAYS, BACKOFF_ALWAYS },
		[OVERHEAD_WINDOW] = { BACKOFF_SAMPLES, BACKOFF_OPERATORS },
	};

	for (size_t i = 0; i < 2; i++) {
		if ((overhead->backoff & steps[kind][i]) == 0) {
			overhead->backoff |= steps[kind][i];
			/* The measured cost included the collector that is now off. */
			overhead->series[kind] = (struct overhead_series){ 0 };
			overhead->around.cost = (struct slices_cost){ 0 };
			return true;
		}
	}
	return false;
}

static void conclude(struct overhead *overhead, int64_t now_ns)
{
	struct overhead_series *series = &overhead->series[overhead->kind];
	struct slices_cost cost = middle(overhead);

	series->due_ns = now_ns + RETRY_NS;
	if (cost.pair_cnt == 0)
		return;
	/* A job changes: a cost measured one interval ago counts half. */
	series->cost.error_frac *= sqrt(1.0 + (double)(now_ns - series->measured_ns) /
						      (double)shapes[overhead->kind].interval_ns);
	series->measured_ns = now_ns;
	slices_combine(&series->cost, &cost);
	if (series->cost.error_frac <= overhead->budget_frac[overhead->kind] / 2)
		series->due_ns = now_ns + shapes[overhead->kind].interval_ns;
	if (series->cost.frac - SURE * series->cost.error_frac >
	    overhead->budget_frac[overhead->kind])
		(void)back_off(overhead, overhead->kind);
	if (overhead->kind == OVERHEAD_WINDOW)
		overhead->slowed_cnt = 0;
}

/*
 * The job looked slow during an OVERHEAD_WINDOW measurement. If it no longer does, the collectors
 * caused it and are too expensive for any measurement to finish. Returns true if that switches
 * one more off.
 */
static bool judge_slowed(struct overhead *overhead, const struct wire_state *states, size_t cnt,
			 bool quiet)
{
	if (!overhead->slowed || least_step(states, cnt) < overhead->calm_step)
		return false;
	overhead->slowed = false;
	overhead->slowed_cnt = quiet && steady(states, cnt) ? overhead->slowed_cnt + 1 : 0;
	if (overhead->slowed_cnt < SLOWED_MAX)
		return false;
	overhead->slowed_cnt = 0;
	return back_off(overhead, OVERHEAD_WINDOW);
}

/* Steps that go back belong to new processes, whose averages include no slices. */
static void watch_step(struct overhead *overhead, uint64_t step, int64_t now_ns)
{
	if (step == overhead->step)
		return;
	if (step < overhead->step)
		overhead->calm_step = 0;
	overhead->step = step;
	overhead->step_ns = now_ns;
	overhead->blind = false;
}

/* A worker that ended reports no cost; a slow or blocked job must not wait for the measurement. */
static bool hopeless(const struct overhead *overhead, const struct wire_state *states, size_t cnt,
		     int64_t now_ns)
{
	return count_living(states, cnt) != overhead->worker_cnt || !steady(states, cnt) ||
	       now_ns - overhead->step_ns > overhead->patience_ns || now_ns > overhead->limit_ns;
}

/* Around windows */

static void pace_break(struct overhead_pace *pace)
{
	pace->from_ns = 0;
}

/* ns: time of the worker's latest mark, when it had counted `step` steps. */
static void pace_add(struct overhead_pace *pace, uint64_t step, int64_t ns)
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

static struct overhead_pace pace_sum(const struct overhead_pace *a, const struct overhead_pace *b)
{
	return (struct overhead_pace){ .cnt = a->cnt + b->cnt,
				       .steps = a->steps + b->steps,
				       .ns = a->ns + b->ns,
				       .steps_steps = a->steps_steps + b->steps_steps,
				       .steps_ns = a->steps_ns + b->steps_ns,
				       .ns_ns = a->ns_ns + b->ns_ns };
}

/* The time of a step and its standard error, as a ratio of sums; false: too few pieces. */
static bool pace_estimate(const struct overhead_pace *pace, double *ret_ns, double *ret_error_ns)
{
	double cnt = (double)pace->cnt, ns, rest;

	if (pace->cnt < OVERHEAD_PIECES_MIN)
		return false;
	ns = pace->ns / pace->steps;
	rest = pace->ns_ns - 2 * ns * pace->steps_ns + ns * ns * pace->steps_steps;
	*ret_ns = ns;
	*ret_error_ns = sqrt(fmax(rest, 0) * cnt / (cnt - 1)) / pace->steps;
	return true;
}

/* The difference between the pace before and after the window is part of the error. */
static bool compare_around(const struct overhead_around *around, struct slices_cost *ret)
{
	struct overhead_pace before = pace_sum(&around->earlier, &around->before);
	double before_ns, inside_ns, after_ns, errors_ns[3], around_ns, drift_ns, error_ns;

	if (!pace_estimate(&before, &before_ns, &errors_ns[0]) ||
	    !pace_estimate(&around->inside, &inside_ns, &errors_ns[1]) ||
	    !pace_estimate(&around->after, &after_ns, &errors_ns[2]))
		return false;
	around_ns = (before_ns + after_ns) / 2;
	drift_ns = (before_ns - after_ns) / 2;
	error_ns = sqrt(errors_ns[0] * errors_ns[0] / 4 + errors_ns[1] * errors_ns[1] +
			errors_ns[2] * errors_ns[2] / 4 + drift_ns * drift_ns);
	*ret = (struct slices_cost){ .frac = inside_ns / around_ns - 1,
				     .error_frac = fmax(error_ns / around_ns, AROUND_ERROR_MIN),
				     .pair_cnt = 1 };
	return true;
}

static void roll_before(struct overhead_around *around)
{
	if (around->before.cnt < PIECES_MAX / 2)
		return;
	around->earlier = around->before;
	around->before = (struct overhead_pace){ .from_step = around->before.from_step,
						 .from_ns = around->before.from_ns };
}

/* Returns true when the time after a window is long enough and gave a cost. */
static bool end_after(struct overhead_around *around)
{
	size_t wanted = MIN(MAX(around->inside.cnt, OVERHEAD_PIECES_MIN), PIECES_MAX / 2);
	struct slices_cost cost;
	bool compared;

	if (around->after.cnt < wanted)
		return false;
	compared = compare_around(around, &cost);
	if (compared)
		slices_combine(&around->cost, &cost);
	around->stage = AROUND_BEFORE;
	around->earlier = around->after;
	around->before = (struct overhead_pace){ 0 };
	return compared;
}

static void begin_inside(struct overhead_around *around)
{
	around->stage = AROUND_INSIDE;
	around->inside = around->after = (struct overhead_pace){ 0 };
	pace_break(&around->before);
}

/* usual: no slices run, no profile is ordered, no summarizer uses the CPUs. */
static bool follow_around(struct overhead_around *around, const struct wire_state *state,
			  bool usual)
{
	struct overhead_pace *pace =
		around->stage == AROUND_AFTER ? &around->after : &around->before;

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

/* Watches the first worker only: all wait for each other. Returns true if the cost changed. */
static bool watch_around(struct overhead *overhead, const struct wire_state *states, size_t cnt,
			 bool quiet)
{
	struct overhead_around *around = &overhead->around;
	size_t first = 0;

	while (first < cnt && !wire_is_watched(&states[first]))
		first++;
	if (overhead->around_off || first == cnt)
		return false;
	if (states[first].worker != around->worker || states[first].step < around->step)
		*around = (struct overhead_around){ .worker = states[first].worker,
						    .cost = around->cost };
	around->step = states[first].step;
	return follow_around(around, &states[first], quiet && !overhead->running);
}

static bool looks_slow(const struct wire_state *states, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (states[i].phase == PHASE_SLOW)
			return true;
	}
	return false;
}

static unsigned take_back(struct overhead *overhead, const struct wire_state *states, size_t cnt,
			  int64_t now_ns, struct wire_slices *order)
{
	overhead->series[overhead->kind].due_ns = now_ns + RETRY_NS;
	overhead->slowed = overhead->kind == OVERHEAD_WINDOW && looks_slow(states, cnt);
	overhead->blind = overhead->kind == OVERHEAD_ALWAYS;
	return end(overhead, states, cnt, order);
}

unsigned overhead_tick(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		       bool quiet, int64_t now_ns, struct wire_slices *order)
{
	watch_step(overhead, least_step(states, cnt), now_ns);
	if (watch_around(overhead, states, cnt, quiet))
		return OVERHEAD_PUBLISH;
	if (judge_slowed(overhead, states, cnt, quiet))
		return OVERHEAD_PUBLISH;
	if (overhead->running && overhead->reported_cnt == overhead->worker_cnt) {
		conclude(overhead, now_ns);
		return end(overhead, states, cnt, order) | OVERHEAD_PUBLISH;
	}
	if (overhead->running && !quiet)
		return end(overhead, states, cnt, order);
	if (overhead->running && hopeless(overhead, states, cnt, now_ns))
		return take_back(overhead, states, cnt, now_ns, order);
	if (overhead->running)
		return OVERHEAD_NOTHING;
	if (overhead->off || !quiet || !steady(states, cnt) ||
	    next_kind(overhead, now_ns, &overhead->kind) < 0)
		return OVERHEAD_NOTHING;
	return begin(overhead, states, cnt, now_ns, order);
}

bool overhead_excuses(const struct overhead *overhead, const struct wire_state *states, size_t cnt)
{
	return (overhead->running && overhead->kind == OVERHEAD_WINDOW) ||
	       least_step(states, cnt) < overhead->calm_step;
}

bool overhead_is_blind(const struct overhead *overhead)
{
	return (overhead->running && overhead->kind == OVERHEAD_ALWAYS) || overhead->blind;
}

void overhead_add_cost(struct overhead *overhead, const struct wire_slices_cost *slices)
{
	if (!overhead->running || slices->id != overhead->id ||
	    overhead->reported_cnt >= overhead->worker_cnt)
		return;
	overhead->reported_cnt++;
	if (slices->pair_cnt == 0)
		return;
	overhead->results[overhead->result_cnt++] = (struct slices_cost){
		.frac = slices->frac,
		.error_frac = slices->error_frac,
		.pair_cnt = slices->pair_cnt,
	};
}

static struct wire_cost cost_of(const struct slices_cost *cost)
{
	return (struct wire_cost){ .frac = cost->frac,
				   .error_frac = cost->error_frac,
				   .pair_cnt = (uint32_t)cost->pair_cnt };
}

/* The cost from slices, whose error is smaller, unless windows cost significantly more. */
static const struct slices_cost *window_cost(const struct overhead *overhead)
{
	const struct slices_cost *slices = &overhead->series[OVERHEAD_WINDOW].cost;
	const struct slices_cost *seen = &overhead->around.cost;

	if (seen->pair_cnt == 0)
		return slices;
	if (slices->pair_cnt == 0)
		return seen->error_frac <= AROUND_ERROR_MAX ? seen : slices;
	return seen->frac - slices->frac > SURE * hypot(seen->error_frac, slices->error_frac)
		       ? seen
		       : slices;
}

void overhead_results(const struct overhead *overhead, struct wire_overhead *ret)
{
	*ret = (struct wire_overhead){
		.always = cost_of(&overhead->series[OVERHEAD_ALWAYS].cost),
		.window = cost_of(window_cost(overhead)),
		.backoff = overhead->backoff,
	};
}

static void describe_cost(const char *name, const struct wire_cost *cost, struct str *text)
{
	if (cost->pair_cnt > 0)
		str_printf(text, "%s_pct=%.3f %s_error_pct=%.3f ", name, cost->frac * 100, name,
			   cost->error_frac * 100);
}

void overhead_describe(const struct wire_overhead *overhead, struct str *text)
{
	describe_cost("always", &overhead->always, text);
	describe_cost("window", &overhead->window, text);
	str_printf(text, "left_out=%" PRIu32, overhead->backoff);
}
