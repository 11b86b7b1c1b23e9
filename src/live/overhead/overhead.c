/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/overhead.h"

#include "base/stats.h"
#include "format/shared/block.h"
#include "live/hub/plan.h"
#include "model/thresholds.h"

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

/* Of the interval whose lower bound switches collectors off; reports show 0.95. */
#define DECISION 0.99

/* Of the intervals that reports show. */
#define SHOWN 0.95

/* Consecutive measurements that alone made the job look slow; a single one may be chance. */
#define SLOWED_MAX 2

/* Widest interval of a cost from windows alone that is reported without slices. */
#define AROUND_WIDTH_MAX 0.3

/* After a measurement without a result; doubled with each that leaves the interval too wide. */
#define RETRY_NS (60 * NSEC_PER_SEC)

/* Workers whose steps are apart by more time are not in step. */
#define APART_NS (400 * NSEC_PER_MSEC)

/*
 * Every other slice is plain, so iterations of OWN_LEAST_NS or more do not become this many times as
 * long by them.
 */
#define OWN_FACTOR 2.5
#define OWN_LEAST_NS (5 * NSEC_PER_MSEC)

#define RESTS 9 /* times what a measurement took: until the next of its kind */

/* Between two measurements of a window's collectors; --audit-every is for the others. */
#define WINDOW_INTERVAL_NS (3600 * NSEC_PER_SEC)

static const struct overhead_shape {
	int64_t slice_ns;   /* desired length */
	uint64_t steps_min; /* of a slice */
	uint64_t slice_cnt; /* two a pair; DECISION needs eight pairs */
} shapes[] = {
	[OVERHEAD_ALWAYS] = { 1 * NSEC_PER_SEC, 5, 20 },
	[OVERHEAD_WINDOW] = { 300 * NSEC_PER_MSEC, 5, 16 },
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
	overhead->interval_ns[OVERHEAD_ALWAYS] = options->audit_every_ns;
	overhead->interval_ns[OVERHEAD_WINDOW] = WINDOW_INTERVAL_NS;
	overhead->around.off = options->no_audit || options->source == ORDER_SOURCE_TORCH;
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

/* Else their slices would not be at one time. step_ns: of the slowest. */
static bool in_step(const struct wire_state *states, size_t cnt, int64_t step_ns, int64_t now_ns)
{
	uint64_t least = UINT64_MAX, greatest = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint64_t step = plan_step_now(&states[i], now_ns);

		if (!wire_is_watched(&states[i]))
			continue;
		least = MIN(least, step);
		greatest = MAX(greatest, step);
	}
	return greatest - least <= (uint64_t)(APART_NS / step_ns) + PLAN_MARGIN_STEPS;
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
	const struct plan_limits limits = { .window_ns = NSEC_PER_SEC,
					    .steps_max = 1,
					    .now_ns = now_ns };
	struct order_plan plan = { 0 };
	int64_t step_ns = slowest_step_ns(states, cnt);
	uint64_t steps;

	if (plan_order(states, cnt, &limits, &plan) < 0 || !in_step(states, cnt, step_ns, now_ns))
		return OVERHEAD_NOTHING;
	free(overhead->results);
	overhead->results = calloc(cnt, sizeof(*overhead->results));
	if (overhead->results == NULL)
		return OVERHEAD_NOTHING;
	overhead->reported_cnt = 0;
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
	overhead->audits.start_step = order->start_step;
	steps = order->start_step - overhead->step + order->slice_steps * order->slice_cnt;
	overhead->limit_ns =
		now_ns + overhead->patience_ns +
		(int64_t)MIN(SLOWER * (double)steps * (double)step_ns, (double)LONGEST_NS);
	return OVERHEAD_SEND;
}

/* Steps of one iteration. */
static uint64_t steps_of_one(const struct wire_state *state)
{
	uint32_t steps = state->stride / MAX(state->cycle, 1u);

	return MAX(steps, 1u);
}

/* Of a job that has just become slow step_ns is still an average of both paces. */
static int64_t step_ns_now(const struct wire_state *state)
{
	int64_t recent_ns = state->iteration_ns / (int64_t)steps_of_one(state);

	return MAX(state->step_ns, recent_ns);
}

/* Steps over which a detector averages; of phases it averages some cycles (detect/kinds.h). */
static uint64_t averaged_steps(const struct overhead *overhead, const struct wire_state *state)
{
	uint64_t plain = (overhead->recent_cnt + 2) * steps_of_one(state);
	uint64_t cycles = (uint64_t)(PHASE_WINDOW_CNT + 2) * state->stride;

	return state->cycle > 1 ? MAX(plain, cycles) : plain;
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
		uint64_t own = averaged_steps(overhead, state);

		if (!wire_is_watched(state))
			continue;
		if (state->step_ns > 0)
			own += (uint64_t)(PLAN_MARGIN_NS / step_ns_now(state));
		steps = MAX(steps, own);
	}
	return least_step(states, cnt) + steps;
}

/* The slices of the measurement under way are over, or canceled. */
static void count_audit(struct overhead *overhead)
{
	struct overhead_audits *audits = &overhead->audits;

	if (audits->from_ns == 0)
		return;
	audits->cnt++;
	audits->took_ns = overhead->now_ns - audits->from_ns;
	audits->total_ns[overhead->kind] += audits->took_ns;
	audits->from_ns = 0;
}

static unsigned end(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		    struct wire_slices *order)
{
	count_audit(overhead);
	overhead->running = false;
	if (overhead->kind == OVERHEAD_WINDOW)
		overhead->calm_step = find_calm(overhead, states, cnt);
	*order = (struct wire_slices){ .id = ++overhead->id, .kind = overhead->kind };
	return OVERHEAD_SEND;
}

/*
 * One value for each pair, the median over the workers that have it: workers wait for each other,
 * so all measure the same cost, and their number does not reduce the error. Returns the number of
 * pairs, 0 when out of memory.
 */
static size_t middle_pairs(const struct overhead *overhead, double ret[static WIRE_PAIRS_MAX])
{
	double *values = calloc(overhead->reported_cnt + 1, sizeof(*values));
	size_t pair_cnt = 0;

	for (size_t i = 0; values != NULL && i < WIRE_PAIRS_MAX; i++) {
		size_t cnt = 0;

		for (size_t j = 0; j < overhead->reported_cnt; j++) {
			const struct wire_slices_cost *result = &overhead->results[j];

			if (i < result->pair_cnt && isfinite(result->pairs[i]))
				values[cnt++] = result->pairs[i];
		}
		if (cnt > 0)
			ret[pair_cnt++] = stats_median(values, cnt);
	}
	free(values);
	return pair_cnt;
}

/* Workers switch at the same steps and wait for each other: the slowest one counts. */
static double greatest_switching_ns(const struct overhead *overhead)
{
	double greatest = 0.0;

	for (size_t i = 0; i < overhead->reported_cnt; i++)
		greatest = fmax(greatest, overhead->results[i].switching_ns);
	return greatest;
}

/*
 * Switches one more collector off; false: all of this kind are off. A worker alone has no
 * collectives, so that step would change nothing.
 */
static bool back_off(struct overhead *overhead, uint32_t kind)
{
	static const uint32_t steps[][2] = {
		[OVERHEAD_ALWAYS] = { BACKOFF_COLLECTIVES, BACKOFF_ALWAYS },
		[OVERHEAD_WINDOW] = { BACKOFF_SAMPLES, BACKOFF_OPERATORS },
	};
	size_t first = kind == OVERHEAD_ALWAYS && overhead->worker_cnt <= 1 ? 1 : 0;

	for (size_t i = first; i < 2; i++) {
		if ((overhead->backoff & steps[kind][i]) == 0) {
			overhead->backoff |= steps[kind][i];
			/* The measured cost included the collector that is now off. */
			series_clear(&overhead->series[kind].pairs);
			overhead->series[kind].due_ns = overhead->series[kind].retry_ns = 0;
			around_clear(&overhead->around);
			return true;
		}
	}
	return false;
}

/*
 * Sooner, if the interval is too wide to compare it with the budget; less and less often. A slice has
 * some iterations, however long these are: the measurements of a kind take a tenth of the time at most.
 */
static void schedule(struct overhead *overhead, int64_t now_ns)
{
	struct overhead_series *series = &overhead->series[overhead->kind];
	struct wire_cost cost = series_cost(&series->pairs, SHOWN);
	int64_t interval_ns = overhead->interval_ns[overhead->kind];
	int64_t rest_ns = RESTS * overhead->audits.took_ns;

	if (cost.pair_cnt > 0 &&
	    cost.high_frac - cost.low_frac <= 2 * overhead->budget_frac[overhead->kind]) {
		series->retry_ns = 0;
		series->due_ns = now_ns + MAX(interval_ns, interval_ns > 0 ? rest_ns : 0);
		return;
	}
	series->retry_ns = MIN(MAX(2 * series->retry_ns, RETRY_NS), interval_ns);
	series->due_ns = now_ns + MAX(series->retry_ns, interval_ns > 0 ? rest_ns : 0);
}

static void conclude(struct overhead *overhead, int64_t now_ns)
{
	struct overhead_series *series = &overhead->series[overhead->kind];
	double pairs[WIRE_PAIRS_MAX];
	size_t cnt = middle_pairs(overhead, pairs);

	series->due_ns = now_ns + RETRY_NS;
	overhead->audits.switching_ns += greatest_switching_ns(overhead);
	if (cnt == 0)
		return;
	series_add(&series->pairs, pairs, cnt);
	schedule(overhead, now_ns);
	/* No lower bound without an interval: 0 is below any budget. */
	if (series_cost(&series->pairs, DECISION).low_frac > overhead->budget_frac[overhead->kind])
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

/* Slices begin later than their order. */
static void watch_audits(struct overhead *overhead, int64_t now_ns)
{
	struct overhead_audits *audits = &overhead->audits;

	overhead->now_ns = now_ns;
	if (audits->since_ns == 0 && overhead->step > 0)
		audits->since_ns = now_ns;
	if (overhead->running && audits->from_ns == 0 && overhead->step >= audits->start_step)
		audits->from_ns = now_ns;
}

unsigned overhead_tick(struct overhead *overhead, const struct wire_state *states, size_t cnt,
		       bool quiet, int64_t now_ns, struct wire_slices *order)
{
	watch_step(overhead, least_step(states, cnt), now_ns);
	watch_audits(overhead, now_ns);
	if (around_watch(&overhead->around, states, cnt, quiet && !overhead->running))
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

/* Whether a worker is so much slower that it cannot be the slices. */
static bool is_surely_slow(const struct wire_state *states, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_state *state = &states[i];

		if (state->phase == PHASE_SLOW && state->baseline_ns >= OWN_LEAST_NS &&
		    (double)state->iteration_ns >= OWN_FACTOR * (double)state->baseline_ns)
			return true;
	}
	return false;
}

bool overhead_excuses(const struct overhead *overhead, const struct wire_state *states, size_t cnt)
{
	if (is_surely_slow(states, cnt))
		return false;
	return (overhead->running && overhead->kind == OVERHEAD_WINDOW) ||
	       least_step(states, cnt) < overhead->calm_step;
}

bool overhead_is_blind(const struct overhead *overhead)
{
	return (overhead->running && overhead->kind == OVERHEAD_ALWAYS) || overhead->blind ||
	       (overhead->backoff & (BACKOFF_COLLECTIVES | BACKOFF_ALWAYS)) != 0;
}

void overhead_add_cost(struct overhead *overhead, const struct wire_slices_cost *slices)
{
	if (!overhead->running || slices->id != overhead->id ||
	    overhead->reported_cnt >= overhead->worker_cnt)
		return;
	overhead->results[overhead->reported_cnt++] = *slices;
}

/* The cost from slices, whose interval is narrower, unless windows cost significantly more. */
static struct wire_cost window_cost(const struct overhead *overhead)
{
	struct wire_cost slices = series_cost(&overhead->series[OVERHEAD_WINDOW].pairs, SHOWN);
	struct wire_cost seen = around_cost(&overhead->around);

	if (seen.pair_cnt == 0)
		return slices;
	if (slices.pair_cnt == 0)
		return seen.high_frac - seen.low_frac <= AROUND_WIDTH_MAX ? seen : slices;
	return seen.low_frac > slices.high_frac ? seen : slices;
}

/* The share of time that iterations lose if they take frac longer. */
static double lost_frac(double frac)
{
	return frac > 0.0 ? frac / (1.0 + frac) : 0.0;
}

static struct wire_audits audits_of(const struct overhead *overhead)
{
	const struct overhead_audits *audits = &overhead->audits;
	struct wire_cost window = series_cost(&overhead->series[OVERHEAD_WINDOW].pairs, SHOWN);
	double on_ns = (double)audits->total_ns[OVERHEAD_WINDOW] / 2;
	struct wire_audits ret = {
		.cnt = audits->cnt,
		.total_ns = audits->total_ns[OVERHEAD_ALWAYS] + audits->total_ns[OVERHEAD_WINDOW],
		.job_ns = audits->since_ns > 0 ? overhead->now_ns - audits->since_ns : 0,
	};

	if (ret.job_ns <= 0)
		return ret;
	ret.cost_frac =
		(on_ns * lost_frac(window.frac) + audits->switching_ns) / (double)ret.job_ns;
	ret.high_frac =
		(on_ns * lost_frac(window.high_frac) + audits->switching_ns) / (double)ret.job_ns;
	return ret;
}

/* What the job pays all the time: the collectors that are always on, and their audits. */
static struct wire_cost effect_of(const struct wire_cost *always, const struct wire_audits *audits)
{
	struct wire_cost effect = *always;

	if (always->pair_cnt == 0)
		return effect;
	effect.frac += audits->cost_frac;
	effect.low_frac += audits->cost_frac;
	effect.high_frac += audits->high_frac;
	return effect;
}

void overhead_results(const struct overhead *overhead, struct wire_overhead *ret)
{
	*ret = (struct wire_overhead){
		.always = series_cost(&overhead->series[OVERHEAD_ALWAYS].pairs, SHOWN),
		.window = window_cost(overhead),
		.audits = audits_of(overhead),
		.backoff = overhead->backoff,
	};
	ret->effect = effect_of(&ret->always, &ret->audits);
}
