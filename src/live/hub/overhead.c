/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/overhead.h"

#include "base/stats.h"
#include "format/shared/block.h"
#include "live/hub/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* A job is steady when its pace was seen for so many iterations. */
#define STEADY_CNT 20u

/* Nothing moves for so many iterations: the audit is taken back. */
#define PATIENCE_STEPS 8
#define PATIENCE_NS (5 * NSEC_PER_SEC)

/* Slices take longer than their iterations did before, but not so many times. */
#define SLOWER 4
#define LONGEST_NS (24 * 3600 * NSEC_PER_SEC)

/* Three standard errors, since those of few pairs are often too small themselves. */
#define SURE 3.0

/* Audits in a row that alone made the job look slow: once may be chance. */
#define SLOWED_MAX 2

/* A stretch around a window is cut into pieces of at least so long, and forgets after so many. */
#define PIECE_NS (500 * NSEC_PER_MSEC)
#define PIECES_MAX 20u

/* Windows alone, without slices to compare with, must be so sure to be told. */
#define AROUND_ERROR_MAX 0.05

/* Surer than this nobody is by marks that are looked at ten times a second. */
#define AROUND_ERROR_MIN 0.001

#define RETRY_NS (60 * NSEC_PER_SEC) /* after one that told nothing, or not surely enough */

static const struct audit_shape {
	int64_t slice_ns;    /* wished length */
	uint64_t steps_min;  /* of a slice */
	uint64_t slice_cnt;  /* odd: it begins and ends without */
	int64_t interval_ns; /* until the next of its kind */
} shapes[] = {
	[AUDIT_ALWAYS] = { 1 * NSEC_PER_SEC, 5, 21, 600 * NSEC_PER_SEC },
	[AUDIT_WINDOW] = { 300 * NSEC_PER_MSEC, 5, 13, 3600 * NSEC_PER_SEC },
};

void audit_init(struct audit *audit, const struct run_options *options)
{
	*audit = (struct audit){ .off = options->no_audit, .recent_cnt = options->recent_cnt };
	audit->budget_frac[AUDIT_ALWAYS] = options->budget_always_frac;
	audit->budget_frac[AUDIT_WINDOW] = options->budget_window_frac;
	/* What torch.profiler costs can't be had in slices: it stops the job. */
	if (options->source == ORDER_SOURCE_TORCH)
		audit->series[AUDIT_WINDOW].due_ns = INT64_MAX;
	audit->around_off = options->no_audit || options->source == ORDER_SOURCE_TORCH;
}

void audit_done(struct audit *audit)
{
	free(audit->results);
	audit->results = NULL;
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

/* That of a window goes first: it is over in seconds, and the next report needs it. */
static int next_kind(const struct audit *audit, int64_t now_ns, uint32_t *ret)
{
	static const uint32_t order[] = { AUDIT_WINDOW, AUDIT_ALWAYS };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (now_ns >= audit->series[order[i]].due_ns) {
			*ret = order[i];
			return 0;
		}
	}
	return -1;
}

/* The least step of the living; 0 without any. */
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

static unsigned begin(struct audit *audit, const struct wire_state *states, size_t cnt,
		      int64_t now_ns, struct wire_audit *order)
{
	const struct plan_limits limits = { .window_ns = NSEC_PER_SEC, .steps_max = 1 };
	struct order_plan plan = { 0 };
	int64_t step_ns = slowest_step_ns(states, cnt);
	uint64_t steps;

	if (plan_order(states, cnt, &limits, &plan) < 0 || !in_step(states, cnt, plan.start_step))
		return AUDIT_NOTHING;
	free(audit->results);
	audit->results = calloc(cnt, sizeof(*audit->results));
	if (audit->results == NULL)
		return AUDIT_NOTHING;
	audit->result_cnt = audit->told_cnt = 0;
	audit->worker_cnt = count_living(states, cnt);
	audit->running = true;
	audit->step_ns = now_ns;
	audit->patience_ns = MAX(PATIENCE_STEPS * step_ns, PATIENCE_NS);
	steps = (uint64_t)((shapes[audit->kind].slice_ns + step_ns - 1) / step_ns);
	/* Whole iterations: their marks may come at unequal distances. */
	steps = MAX((steps + plan.stride - 1) / plan.stride, shapes[audit->kind].steps_min);
	*order = (struct wire_audit){ .id = ++audit->id,
				      .kind = audit->kind,
				      .start_step = plan.start_step,
				      .slice_steps = steps * plan.stride,
				      .slice_cnt = shapes[audit->kind].slice_cnt,
				      .stride = plan.stride };
	steps = order->start_step - audit->step + order->slice_steps * order->slice_cnt;
	audit->limit_ns =
		now_ns + audit->patience_ns +
		(int64_t)MIN(SLOWER * (double)steps * (double)step_ns, (double)LONGEST_NS);
	return AUDIT_SEND;
}

/*
 * From here on no average holds iterations of an audit that ends now: those that are
 * averaged, and those until the worker knows.
 */
static uint64_t find_calm(const struct audit *audit, const struct wire_state *states, size_t cnt)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct wire_state *state = &states[i];
		uint64_t own = (uint64_t)(audit->recent_cnt + 2) * MAX(state->stride, 1u);

		if (!wire_is_watched(state))
			continue;
		if (state->step_ns > 0)
			own += (uint64_t)(PLAN_MARGIN_NS / state->step_ns);
		steps = MAX(steps, own);
	}
	return least_step(states, cnt) + steps;
}

static unsigned end(struct audit *audit, const struct wire_state *states, size_t cnt,
		    struct wire_audit *order)
{
	audit->running = false;
	if (audit->kind == AUDIT_WINDOW)
		audit->calm_step = find_calm(audit, states, cnt);
	*order = (struct wire_audit){ .id = ++audit->id, .kind = audit->kind };
	return AUDIT_SEND;
}

/*
 * Workers wait for each other, so all tell the same cost: the middle one, not surer by
 * number. No pairs: none saw enough, or out of memory.
 */
static struct slices_cost middle(const struct audit *audit)
{
	struct slices_cost ret = { .pair_cnt = SIZE_MAX };
	double *values = calloc(audit->result_cnt + 1, sizeof(*values));

	if (values == NULL || audit->result_cnt == 0) {
		free(values);
		return (struct slices_cost){ 0 };
	}
	for (size_t i = 0; i < audit->result_cnt; i++) {
		values[i] = audit->results[i].frac;
		ret.pair_cnt = MIN(ret.pair_cnt, audit->results[i].pair_cnt);
	}
	ret.frac = stats_median(values, audit->result_cnt);
	for (size_t i = 0; i < audit->result_cnt; i++)
		values[i] = audit->results[i].error_frac;
	ret.error_frac = stats_median(values, audit->result_cnt);
	free(values);
	return ret;
}

/* One thing more is left out; false when there is nothing more of this kind. */
static bool back_off(struct audit *audit, uint32_t kind)
{
	static const uint32_t steps[][2] = {
		[AUDIT_ALWAYS] = { BACKOFF_ALWAYS, BACKOFF_ALWAYS },
		[AUDIT_WINDOW] = { BACKOFF_SAMPLES, BACKOFF_OPERATORS },
	};

	for (size_t i = 0; i < 2; i++) {
		if ((audit->backoff & steps[kind][i]) == 0) {
			audit->backoff |= steps[kind][i];
			/* What was measured is of collectors that run no more. */
			audit->series[kind] = (struct audit_series){ 0 };
			audit->around.cost = (struct slices_cost){ 0 };
			return true;
		}
	}
	return false;
}

static void conclude(struct audit *audit, int64_t now_ns)
{
	struct audit_series *series = &audit->series[audit->kind];
	struct slices_cost cost = middle(audit);

	series->due_ns = now_ns + RETRY_NS;
	if (cost.pair_cnt == 0)
		return;
	/* A job changes: what was measured an interval ago counts half. */
	series->cost.error_frac *= sqrt(1.0 + (double)(now_ns - series->measured_ns) /
						      (double)shapes[audit->kind].interval_ns);
	series->measured_ns = now_ns;
	slices_combine(&series->cost, &cost);
	if (series->cost.error_frac <= audit->budget_frac[audit->kind] / 2)
		series->due_ns = now_ns + shapes[audit->kind].interval_ns;
	if (series->cost.frac - SURE * series->cost.error_frac > audit->budget_frac[audit->kind])
		(void)back_off(audit, audit->kind);
	if (audit->kind == AUDIT_WINDOW)
		audit->slowed_cnt = 0;
}

/*
 * The job looked slow in the audit of a window. If it doesn't without that, it was slow by
 * us; so dear are the collectors that no audit of them comes to its end. Returns true when
 * that leaves out one thing more.
 */
static bool judge_slowed(struct audit *audit, const struct wire_state *states, size_t cnt,
			 bool quiet)
{
	if (!audit->slowed || least_step(states, cnt) < audit->calm_step)
		return false;
	audit->slowed = false;
	audit->slowed_cnt = quiet && steady(states, cnt) ? audit->slowed_cnt + 1 : 0;
	if (audit->slowed_cnt < SLOWED_MAX)
		return false;
	audit->slowed_cnt = 0;
	return back_off(audit, AUDIT_WINDOW);
}

/* Steps that go back are counted anew, by processes whose averages hold nothing of ours. */
static void watch_step(struct audit *audit, uint64_t step, int64_t now_ns)
{
	if (step == audit->step)
		return;
	if (step < audit->step)
		audit->calm_step = 0;
	audit->step = step;
	audit->step_ns = now_ns;
}

/* A worker that ended can't tell; a job that is slow or stands still must not wait for us. */
static bool hopeless(const struct audit *audit, const struct wire_state *states, size_t cnt,
		     int64_t now_ns)
{
	return count_living(states, cnt) != audit->worker_cnt || !steady(states, cnt) ||
	       now_ns - audit->step_ns > audit->patience_ns || now_ns > audit->limit_ns;
}

/* Around windows */

static void pace_break(struct audit_pace *pace)
{
	pace->from_ns = 0;
}

/* The latest mark of a worker that has counted so many steps came at ns. */
static void pace_add(struct audit_pace *pace, uint64_t step, int64_t ns)
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

static struct audit_pace pace_sum(const struct audit_pace *a, const struct audit_pace *b)
{
	return (struct audit_pace){ .cnt = a->cnt + b->cnt,
				    .steps = a->steps + b->steps,
				    .ns = a->ns + b->ns,
				    .steps_steps = a->steps_steps + b->steps_steps,
				    .steps_ns = a->steps_ns + b->steps_ns,
				    .ns_ns = a->ns_ns + b->ns_ns };
}

/* ns of a step and one standard error of it, of a ratio of sums; false: too few pieces. */
static bool pace_tell(const struct audit_pace *pace, double *ret_ns, double *ret_error_ns)
{
	double cnt = (double)pace->cnt, ns, rest;

	if (pace->cnt < AUDIT_PIECES_MIN)
		return false;
	ns = pace->ns / pace->steps;
	rest = pace->ns_ns - 2 * ns * pace->steps_ns + ns * ns * pace->steps_steps;
	*ret_ns = ns;
	*ret_error_ns = sqrt(fmax(rest, 0) * cnt / (cnt - 1)) / pace->steps;
	return true;
}

/* A job that was faster before than after, or slower, may have been anything meanwhile. */
static bool compare_around(const struct audit_around *around, struct slices_cost *ret)
{
	struct audit_pace before = pace_sum(&around->earlier, &around->before);
	double before_ns, inside_ns, after_ns, errors_ns[3], around_ns, drift_ns, error_ns;

	if (!pace_tell(&before, &before_ns, &errors_ns[0]) ||
	    !pace_tell(&around->inside, &inside_ns, &errors_ns[1]) ||
	    !pace_tell(&around->after, &after_ns, &errors_ns[2]))
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

static void roll_before(struct audit_around *around)
{
	if (around->before.cnt < PIECES_MAX / 2)
		return;
	around->earlier = around->before;
	around->before = (struct audit_pace){ .from_step = around->before.from_step,
					      .from_ns = around->before.from_ns };
}

/* Returns true when a window and what is around it have been seen. */
static bool end_after(struct audit_around *around)
{
	size_t wanted = MIN(MAX(around->inside.cnt, AUDIT_PIECES_MIN), PIECES_MAX / 2);
	struct slices_cost cost;
	bool told;

	if (around->after.cnt < wanted)
		return false;
	told = compare_around(around, &cost);
	if (told)
		slices_combine(&around->cost, &cost);
	around->stage = AROUND_BEFORE;
	around->earlier = around->after;
	around->before = (struct audit_pace){ 0 };
	return told;
}

static void begin_inside(struct audit_around *around)
{
	around->stage = AROUND_INSIDE;
	around->inside = around->after = (struct audit_pace){ 0 };
	pace_break(&around->before);
}

/* usual: nobody's slices, no profile on its way, no summaries that use the CPUs. */
static bool follow_around(struct audit_around *around, const struct wire_state *state, bool usual)
{
	struct audit_pace *pace = around->stage == AROUND_AFTER ? &around->after : &around->before;

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

/* Of the first worker: all wait for each other. Returns true when there is news. */
static bool watch_around(struct audit *audit, const struct wire_state *states, size_t cnt,
			 bool quiet)
{
	struct audit_around *around = &audit->around;
	size_t first = 0;

	while (first < cnt && !wire_is_watched(&states[first]))
		first++;
	if (audit->around_off || first == cnt)
		return false;
	if (states[first].worker != around->worker || states[first].step < around->step)
		*around = (struct audit_around){ .worker = states[first].worker,
						 .cost = around->cost };
	around->step = states[first].step;
	return follow_around(around, &states[first], quiet && !audit->running);
}

static bool looks_slow(const struct wire_state *states, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (states[i].phase == PHASE_SLOW)
			return true;
	}
	return false;
}

static unsigned take_back(struct audit *audit, const struct wire_state *states, size_t cnt,
			  int64_t now_ns, struct wire_audit *order)
{
	audit->series[audit->kind].due_ns = now_ns + RETRY_NS;
	audit->slowed = audit->kind == AUDIT_WINDOW && looks_slow(states, cnt);
	return end(audit, states, cnt, order);
}

unsigned audit_tick(struct audit *audit, const struct wire_state *states, size_t cnt, bool quiet,
		    int64_t now_ns, struct wire_audit *order)
{
	watch_step(audit, least_step(states, cnt), now_ns);
	if (watch_around(audit, states, cnt, quiet))
		return AUDIT_PUBLISH;
	if (judge_slowed(audit, states, cnt, quiet))
		return AUDIT_PUBLISH;
	if (audit->running && audit->told_cnt == audit->worker_cnt) {
		conclude(audit, now_ns);
		return end(audit, states, cnt, order) | AUDIT_PUBLISH;
	}
	if (audit->running && !quiet)
		return end(audit, states, cnt, order);
	if (audit->running && hopeless(audit, states, cnt, now_ns))
		return take_back(audit, states, cnt, now_ns, order);
	if (audit->running)
		return AUDIT_NOTHING;
	if (audit->off || !quiet || !steady(states, cnt) ||
	    next_kind(audit, now_ns, &audit->kind) < 0)
		return AUDIT_NOTHING;
	return begin(audit, states, cnt, now_ns, order);
}

bool audit_excuses(const struct audit *audit, const struct wire_state *states, size_t cnt)
{
	return (audit->running && audit->kind == AUDIT_WINDOW) ||
	       least_step(states, cnt) < audit->calm_step;
}

void audit_take(struct audit *audit, const struct wire_audited *audited)
{
	if (!audit->running || audited->id != audit->id || audit->told_cnt >= audit->worker_cnt)
		return;
	audit->told_cnt++;
	if (audited->pair_cnt == 0)
		return;
	audit->results[audit->result_cnt++] = (struct slices_cost){
		.frac = audited->frac,
		.error_frac = audited->error_frac,
		.pair_cnt = audited->pair_cnt,
	};
}

static struct wire_cost cost_of(const struct slices_cost *cost)
{
	return (struct wire_cost){ .frac = cost->frac,
				   .error_frac = cost->error_frac,
				   .pair_cnt = (uint32_t)cost->pair_cnt };
}

/* That of the slices, which are surer, unless windows surely cost more than those hold. */
static const struct slices_cost *window_cost(const struct audit *audit)
{
	const struct slices_cost *slices = &audit->series[AUDIT_WINDOW].cost;
	const struct slices_cost *seen = &audit->around.cost;

	if (seen->pair_cnt == 0)
		return slices;
	if (slices->pair_cnt == 0)
		return seen->error_frac <= AROUND_ERROR_MAX ? seen : slices;
	return seen->frac - slices->frac > SURE * hypot(seen->error_frac, slices->error_frac)
		       ? seen
		       : slices;
}

void audit_overhead(const struct audit *audit, struct wire_overhead *ret)
{
	*ret = (struct wire_overhead){
		.always = cost_of(&audit->series[AUDIT_ALWAYS].cost),
		.window = cost_of(window_cost(audit)),
		.backoff = audit->backoff,
	};
}

static void describe_cost(const char *name, const struct wire_cost *cost, struct str *text)
{
	if (cost->pair_cnt > 0)
		str_printf(text, "%s_pct=%.3f %s_error_pct=%.3f ", name, cost->frac * 100, name,
			   cost->error_frac * 100);
}

void audit_describe(const struct wire_overhead *overhead, struct str *text)
{
	describe_cost("always", &overhead->always, text);
	describe_cost("window", &overhead->window, text);
	str_printf(text, "left_out=%" PRIu32, overhead->backoff);
}
