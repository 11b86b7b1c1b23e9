/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/overhead.h"

#include "base/clock.h"
#include "format/shared/block.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORKERS 4
#define ALWAYS_OFF (BACKOFF_COLLECTIVES | BACKOFF_ALWAYS)
#define PAIRS 10
#define TICK_NS (100 * NSEC_PER_MSEC)
#define STEP_NS (20 * NSEC_PER_MSEC)

static const struct run_options options = { .budget_always_frac = 0.005,
					    .budget_window_frac = 0.03,
					    .audit_every_ns = 600 * NSEC_PER_SEC,
					    .recent_cnt = 50 };

/* A steady job; cost_frac: by how much the collectors of each kind slow its iterations. */
struct job {
	struct overhead overhead;
	struct wire_state states[WORKERS];
	int64_t now_ns;
	double cost_frac[2]; /* by kind */
	double per_left_out; /* by how much each collector that is off reduces it */
	double spread_frac;  /* from the least to the greatest of an audit's pairs */
	double switching_ns;
	int64_t long_ns; /* an iteration; 0: STEP_NS */
	struct wire_slices order;
	unsigned blind; /* so many workers, the first, report no pairs */
	/* a window makes the job look slow until so many collectors are off; 0: never */
	unsigned dear;
	uint64_t slow_step;
	unsigned sent[2], ended, published;
};

static void job_init(struct job *job, const struct run_options *how)
{
	*job = (struct job){ .now_ns = NSEC_PER_SEC };
	overhead_init(&job->overhead, how);
	for (int32_t i = 0; i < WORKERS; i++)
		job->states[i] = (struct wire_state){ .worker = 1 + (uint32_t)i,
						      .rank = i,
						      .phase = PHASE_STEADY,
						      .stride = 1,
						      .step = 100,
						      .iterations = 100,
						      .step_ns = STEP_NS };
}

/* The slices are over: all workers report, the first job->blind without pairs. */
static void answer(struct job *job)
{
	uint32_t kind = job->order.kind;
	uint32_t mine = kind == OVERHEAD_ALWAYS ? ALWAYS_OFF : BACKOFF_SAMPLES | BACKOFF_OPERATORS;
	double frac = job->cost_frac[kind] -
		      job->per_left_out * __builtin_popcount(job->overhead.backoff & mine);

	for (uint32_t i = 0; i < WORKERS && job->states[i].phase != PHASE_GONE; i++) {
		struct wire_slices_cost cost = { .worker = 1 + i,
						 .id = job->order.id,
						 .pair_cnt = PAIRS,
						 .switching_ns = job->switching_ns };

		for (unsigned pair = 0; pair < PAIRS; pair++)
			cost.pairs[pair] =
				i < job->blind ? (double)NAN
					       : log1p(frac) + job->spread_frac *
								       (pair / (PAIRS - 1.0) - 0.5);
		overhead_add_cost(&job->overhead, &cost);
	}
}

/* With all collectors of a window the job's detector soon reports it slow. */
static void slow_down(struct job *job)
{
	const struct wire_slices *order = &job->order;
	uint64_t step = job->states[1].step;

	if (!job->dear)
		return;
	if (order->slice_cnt > 0 && order->kind == OVERHEAD_WINDOW &&
	    step > order->start_step + 3 * order->slice_steps &&
	    (unsigned)__builtin_popcount(job->overhead.backoff) < job->dear) {
		job->states[1].phase = PHASE_SLOW;
		job->slow_step = step;
	} else if (step > job->slow_step + options.recent_cnt) {
		job->states[1].phase = PHASE_STEADY;
	}
}

/* Of a tick; those of long iterations end in some of them. */
static uint64_t steps_of(const struct job *job)
{
	return job->long_ns > 0 ? job->now_ns % job->long_ns < TICK_NS : TICK_NS / STEP_NS;
}

static void tick(struct job *job, bool quiet)
{
	struct wire_slices order;
	unsigned actions;

	job->now_ns += TICK_NS;
	for (size_t i = 0; i < WORKERS; i++)
		job->states[i].step += steps_of(job);
	slow_down(job);
	actions = overhead_tick(&job->overhead, job->states, WORKERS, quiet, job->now_ns, &order);
	job->published += (actions & OVERHEAD_PUBLISH) != 0;
	if ((actions & OVERHEAD_SEND) == 0)
		return;
	job->order = order;
	if (order.slice_cnt == 0)
		job->ended++;
	else
		job->sent[order.kind]++;
}

/* Ticks for so long; workers report once the last slice is over. */
static void run_for(struct job *job, int64_t ns)
{
	int64_t until_ns = job->now_ns + ns;

	while (job->now_ns < until_ns) {
		const struct wire_slices *order = &job->order;

		tick(job, true);
		if (order->slice_cnt > 0 &&
		    job->states[0].step > order->start_step + order->slice_steps * order->slice_cnt)
			answer(job);
	}
}

static void test_a_window_goes_first_and_both_are_measured(void **state)
{
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_ALWAYS] = 0.001;
	job.cost_frac[OVERHEAD_WINDOW] = 0.012;
	tick(&job, true);
	assert_int_equal(job.order.kind, OVERHEAD_WINDOW);
	assert_int_equal(job.order.slice_cnt % 2, 0);
	assert_true(job.order.start_step > job.states[0].step);
	run_for(&job, 60 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_float_equal(overhead.always.frac, 0.001, 1e-6);
	assert_float_equal(overhead.window.frac, 0.012, 1e-6);
	assert_int_equal(overhead.backoff, BACKOFF_NONE);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	assert_int_equal(job.sent[OVERHEAD_ALWAYS], 1);
	assert_int_equal(job.ended, 2);
	overhead_done(&job.overhead);
}

static void test_slices_are_whole_iterations_with_two_optimizers(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	for (size_t i = 0; i < WORKERS; i++)
		job.states[i].stride = 3;
	tick(&job, true);
	assert_int_equal(job.order.stride, 3);
	assert_int_equal(job.order.start_step % 3, 0);
	assert_int_equal(job.order.slice_steps % 3, 0);
	assert_in_range(job.order.slice_steps, 15, 20); /* 0.3 s, at least 5 iterations */
	overhead_done(&job.overhead);
}

static void test_one_worker_is_enough(_unused_ void **state)
{
	struct wire_overhead overhead;
	struct job job;

	job_init(&job, &options);
	for (size_t i = 1; i < WORKERS; i++)
		job.states[i].phase = PHASE_GONE;
	job.cost_frac[OVERHEAD_WINDOW] = 0.012;
	run_for(&job, 60 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_float_equal(overhead.window.frac, 0.012, 1e-6);
	assert_int_equal(job.ended, 2);
	overhead_done(&job.overhead);
}

static void test_a_measurement_is_repeated_after_its_interval(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	run_for(&job, 3500 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	assert_in_range(job.sent[OVERHEAD_ALWAYS], 5, 6);
	overhead_done(&job.overhead);
}

static void test_measurements_without_a_pause_follow_each_other(_unused_ void **state)
{
	struct run_options eager = options;
	struct job job;

	eager.audit_every_ns = 0;
	job_init(&job, &eager);
	run_for(&job, 600 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	assert_in_range(job.sent[OVERHEAD_ALWAYS], 24, 30); /* of 20 s, and the way there */
	overhead_done(&job.overhead);
}

static void test_a_cost_that_grows_later_is_noticed(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_ALWAYS] = 0.001;
	run_for(&job, 100 * 600 * NSEC_PER_SEC);
	assert_in_range(job.sent[OVERHEAD_ALWAYS], 90, 100);
	job.cost_frac[OVERHEAD_ALWAYS] = 0.02;
	run_for(&job, 2 * 700 * NSEC_PER_SEC);
	assert_int_equal(job.overhead.backoff, ALWAYS_OFF);
	overhead_done(&job.overhead);
}

static void test_collectors_over_budget_are_switched_off_one_by_one(void **state)
{
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_WINDOW] = 0.05;
	job.per_left_out = 0.015;
	run_for(&job, 100 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_int_equal(overhead.backoff, BACKOFF_SAMPLES | BACKOFF_OPERATORS);
	assert_float_equal(overhead.window.frac, 0.02, 1e-6); /* of the collectors still on */
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 3);
	overhead_done(&job.overhead);
}

/* What is switched off where all that is always on costs 2 %, per_left_out less with each part. */
static void expect_off(uint32_t expected, double per_left_out, uint32_t workers)
{
	struct job job;

	job_init(&job, &options);
	for (uint32_t i = workers; i < WORKERS; i++)
		job.states[i].phase = PHASE_GONE;
	job.cost_frac[OVERHEAD_ALWAYS] = 0.02;
	job.per_left_out = per_left_out;
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.overhead.backoff, expected);
	overhead_done(&job.overhead);
}

static void test_always_on_collectors_over_budget_are_off_but_for_marks(void **state)
{
	(void)state;
	expect_off(ALWAYS_OFF, 0.01, WORKERS);
}

static void test_collectives_go_first_and_alone_if_that_is_enough(void **state)
{
	(void)state;
	expect_off(BACKOFF_COLLECTIVES, 0.018, WORKERS);
}

static void test_a_worker_alone_has_no_collectives_to_switch_off(void **state)
{
	(void)state;
	expect_off(BACKOFF_ALWAYS, 0.018, 1);
}

static void test_a_cost_whose_interval_includes_the_budget_switches_nothing_off(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_WINDOW] = 0.05;
	job.spread_frac = 0.2;
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.overhead.backoff, BACKOFF_NONE);
	overhead_done(&job.overhead);
}

static void test_a_noisy_job_is_measured_again_soon(void **state)
{
	struct run_options strict = options;
	struct job job;

	(void)state;
	strict.budget_always_frac = 1;
	strict.budget_window_frac = 0.02; /* half the interval: 0.024, with two audits 0.014 */
	job_init(&job, &strict);
	job.spread_frac = 0.08;
	run_for(&job, 600 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 2);
	assert_int_equal(job.sent[OVERHEAD_ALWAYS], 1);
	overhead_done(&job.overhead);
}

/* A job that is too noisy for its budget is not measured for ever. */
static void test_a_very_noisy_job_is_measured_less_and_less_often(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.spread_frac = 2;
	run_for(&job, 3600 * NSEC_PER_SEC);
	assert_in_range(job.sent[OVERHEAD_ALWAYS], 6,
			10); /* after 1, 2, 4, 8, 10, 10, ... minutes */
	assert_in_range(job.sent[OVERHEAD_WINDOW], 5, 7);
	overhead_done(&job.overhead);
}

/* An audit of a hundred iterations of a second takes long, whatever its result. */
static void test_a_job_of_long_iterations_is_not_measured_all_the_time(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.spread_frac = 2;
	job.long_ns = NSEC_PER_SEC;
	for (size_t i = 0; i < WORKERS; i++)
		job.states[i].step_ns = job.long_ns;
	run_for(&job, 3600 * NSEC_PER_SEC);
	assert_in_range(job.sent[OVERHEAD_ALWAYS], 3, 5); /* of 100 s */
	assert_in_range(job.sent[OVERHEAD_WINDOW], 3, 5); /* of 80 s */
	overhead_done(&job.overhead);
}

static void test_audits_are_counted_as_cost(void **state)
{
	struct wire_overhead overhead;
	struct job job;
	double window_s = 16 * 0.3, always_s = 20, audits_frac;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_ALWAYS] = 0.001;
	job.cost_frac[OVERHEAD_WINDOW] = 0.02;
	job.switching_ns = 8 * NSEC_PER_MSEC;
	run_for(&job, 500 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_int_equal(overhead.audits.cnt, 2);
	assert_float_equal((double)overhead.audits.total_ns / NSEC_PER_SEC, (window_s + always_s),
			   1);
	assert_float_equal((double)overhead.audits.job_ns / NSEC_PER_SEC, 500, 1);
	audits_frac = (window_s / 2 * 0.02 / 1.02 + 2 * 0.008) / 500;
	assert_float_equal(overhead.audits.cost_frac, audits_frac, 1e-5);
	assert_float_equal(overhead.effect.frac, (0.001 + audits_frac), 1e-5);
	assert_true(overhead.effect.high_frac > overhead.always.high_frac);
	overhead_done(&job.overhead);
}

static void test_workers_without_pairs_are_ignored(void **state)
{
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.cost_frac[OVERHEAD_WINDOW] = 0.012;
	job.blind = WORKERS - 1;
	run_for(&job, 100 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_float_equal(overhead.window.frac, 0.012, 1e-6);
	assert_int_equal(overhead.window.pair_cnt, PAIRS);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	overhead_done(&job.overhead);
}

static void test_a_measurement_without_results_is_repeated_soon(void **state)
{
	struct wire_overhead overhead;
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.blind = WORKERS;
	run_for(&job, 300 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_int_equal(overhead.window.pair_cnt, 0);
	assert_in_range(job.sent[OVERHEAD_WINDOW], 4, 5);
	overhead_done(&job.overhead);
}

static void test_a_profile_cancels_a_measurement(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	tick(&job, true);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	tick(&job, false);
	assert_int_equal(job.ended, 1);
	answer(&job); /* too late */
	tick(&job, false);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	assert_int_equal(job.published, 0);
	overhead_done(&job.overhead);
}

static void test_a_job_that_is_not_steady_is_left_alone(void **state)
{
	static const uint32_t phases[] = { PHASE_LEARNING, PHASE_SLOW, PHASE_BLOCKED,
					   PHASE_PROFILING };
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		job_init(&job, &options);
		job.states[2].phase = phases[i];
		run_for(&job, 10 * NSEC_PER_SEC);
		assert_int_equal(job.sent[OVERHEAD_WINDOW] + job.sent[OVERHEAD_ALWAYS], 0);
		overhead_done(&job.overhead);
	}
}

/* Ticks, of 5 steps each, for which a job that becomes slow in a measurement is excused. */
static unsigned excused_ticks(uint32_t cycle, int64_t iteration_ns, int64_t baseline_ns)
{
	struct run_options how = options;
	struct job job;
	unsigned excused = 0;

	how.recent_cnt = 20;
	job_init(&job, &how);
	job.states[0].stride = job.states[0].cycle = cycle;
	for (size_t i = 0; i < WORKERS; i++)
		job.states[i].iteration_ns = iteration_ns;
	job.states[1].baseline_ns = baseline_ns; /* of the one that becomes slow */
	assert_false(overhead_excuses(&job.overhead, job.states, WORKERS));
	tick(&job, true);
	assert_true(overhead_excuses(&job.overhead, job.states, WORKERS));
	job.states[1].phase = PHASE_SLOW;
	tick(&job, true);
	for (; overhead_excuses(&job.overhead, job.states, WORKERS) && excused < 1000; excused++)
		tick(&job, true);
	overhead_done(&job.overhead);
	return excused;
}

static void test_a_slow_job_is_excused_until_averages_exclude_the_slices(void **state)
{
	(void)state;
	assert_int_equal(excused_ticks(1, 0, 0), (20 + 2 + 40) / 5 + 1); /* 40: until all know */
	/* A step takes longer: fewer of them until all know. */
	assert_int_equal(excused_ticks(1, 4 * STEP_NS, 2 * STEP_NS), (20 + 2 + 10) / 5 + 1);
	/* Cycles of 24 iterations: not 22 cycles. */
	assert_int_equal(excused_ticks(24, 0, 0), (12 * 24 + 40) / 5 + 1);
	/* Slices do not make long iterations three times as long. */
	assert_int_equal(excused_ticks(1, 3 * STEP_NS, STEP_NS), 0);
	assert_true(excused_ticks(1, 3 * NSEC_PER_MSEC, NSEC_PER_MSEC) > 0);
}

static void test_collectors_too_expensive_to_measure_are_switched_off(_unused_ void **state)
{
	struct wire_overhead overhead;
	struct job job;

	job_init(&job, &options);
	job.dear = 1;
	job.cost_frac[OVERHEAD_WINDOW] = 0.02; /* of the collectors still on */
	run_for(&job, 40 * NSEC_PER_SEC);
	assert_int_equal(job.overhead.backoff, BACKOFF_NONE); /* once may be chance */
	run_for(&job, 160 * NSEC_PER_SEC);
	overhead_results(&job.overhead, &overhead);
	assert_int_equal(overhead.backoff, BACKOFF_SAMPLES);
	assert_float_equal(overhead.window.frac, 0.02, 1e-6);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 3);
	assert_int_equal(job.published, 3); /* one switched off; then one result of each kind */
	overhead_done(&job.overhead);
}

/* The job looks slow with and without the slices, so no collector is switched off. */
static void test_a_job_that_stays_slow_switches_nothing_off(_unused_ void **state)
{
	struct job job;

	job_init(&job, &options);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = 0; j < 2000 && job.order.slice_cnt == 0; j++)
			tick(&job, true);
		job.states[1].phase = PHASE_SLOW;
		for (unsigned j = 0; j < 100; j++)
			tick(&job, true);
		job.states[1].phase = PHASE_STEADY;
	}
	assert_in_range(job.sent[OVERHEAD_WINDOW], 2, 4);
	assert_int_equal(job.overhead.backoff, BACKOFF_NONE);
	overhead_done(&job.overhead);
}

/* The processes begin at step 0 again: a slowdown is their own. */
static void test_a_restarted_job_is_not_excused(_unused_ void **state)
{
	struct job job;

	job_init(&job, &options);
	tick(&job, true);
	tick(&job, false); /* a profile ends the measurement */
	assert_true(overhead_excuses(&job.overhead, job.states, WORKERS));
	for (size_t i = 0; i < WORKERS; i++) {
		job.states[i].phase = PHASE_LEARNING;
		job.states[i].step = 0;
	}
	tick(&job, true);
	assert_false(overhead_excuses(&job.overhead, job.states, WORKERS));
	overhead_done(&job.overhead);
}

/* A launcher restarts the ranks after a failure, between two ticks of the hub. */
static void test_a_restarted_worker_ends_a_measurement(_unused_ void **state)
{
	struct job job;

	job_init(&job, &options);
	tick(&job, true);
	job.states[3] = (struct wire_state){ .worker = 9, .rank = 3, .phase = PHASE_LEARNING };
	tick(&job, true);
	assert_int_equal(job.ended, 1);
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	job.states[3] = job.states[2]; /* it has learned, and is at the same step as the others */
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 2);
	overhead_done(&job.overhead);
}

static void test_a_hang_ends_a_measurement(_unused_ void **state)
{
	struct job job;

	job_init(&job, &options);
	tick(&job, true);
	for (unsigned i = 0; i < 100 && job.ended == 0; i++) {
		for (size_t j = 0; j < WORKERS; j++)
			job.states[j].step = 107 - TICK_NS / STEP_NS; /* as tick() adds it */
		tick(&job, true);
	}
	assert_int_equal(job.ended, 1);
	tick(&job, true);
	assert_int_not_equal(job.order.kind, OVERHEAD_WINDOW); /* not again at once */
	overhead_done(&job.overhead);
}

/* The job stops while the collectors of one kind are measured. */
static void hang_while_measured(struct job *job, uint32_t kind)
{
	job_init(job, &options);
	for (unsigned i = 0; i < 10000 && (job->order.kind != kind || job->order.slice_cnt == 0);
	     i++)
		run_for(job, TICK_NS);
	for (unsigned i = 0; i < 1000 && job->overhead.running; i++) {
		for (size_t j = 0; j < WORKERS; j++)
			job->states[j].step -= TICK_NS / STEP_NS; /* as tick() adds it */
		tick(job, true);
	}
	assert_false(job->overhead.running);
}

static void test_a_hang_in_a_measurement_of_all_collectors_is_known(_unused_ void **state)
{
	struct job job;

	hang_while_measured(&job, OVERHEAD_WINDOW);
	assert_false(overhead_is_blind(&job.overhead));
	overhead_done(&job.overhead);
	hang_while_measured(&job, OVERHEAD_ALWAYS);
	assert_true(overhead_is_blind(&job.overhead));
	tick(&job, true); /* it goes on after all */
	assert_false(overhead_is_blind(&job.overhead));
	overhead_done(&job.overhead);
}

/* A worker whose marks are lost goes on and never reports. */
static void test_a_worker_that_never_reports_ends_a_measurement(void **state)
{
	struct job job;
	int64_t begin_ns;

	(void)state;
	job_init(&job, &options);
	tick(&job, true);
	begin_ns = job.now_ns;
	for (unsigned i = 0; i < 10000 && job.ended == 0; i++)
		tick(&job, true);
	assert_int_equal(job.ended, 1);
	/* 16 slices of 0.3 s and the way there, four times. */
	assert_in_range(job.now_ns - begin_ns, 19 * NSEC_PER_SEC, 35 * NSEC_PER_SEC);
	tick(&job, true);
	assert_int_not_equal(job.order.kind, OVERHEAD_WINDOW); /* not again at once */
	overhead_done(&job.overhead);
}

/* A worker that joined late counts its own steps, so equal steps are not simultaneous. */
static void test_workers_at_different_steps_are_not_measured(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	job.states[1].step += 15; /* the states were taken at different times */
	run_for(&job, NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 1);
	overhead_done(&job.overhead);
	job_init(&job, &options);
	job.states[1].step += 25;
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW] + job.sent[OVERHEAD_ALWAYS], 0);
	overhead_done(&job.overhead);
}

static void test_a_worker_that_ends_ends_a_measurement(void **state)
{
	struct job job;

	(void)state;
	job_init(&job, &options);
	tick(&job, true);
	job.states[3].phase = PHASE_GONE;
	tick(&job, true);
	assert_int_equal(job.ended, 1);
	overhead_done(&job.overhead);
}

static void test_no_audit_measures_nothing(_unused_ void **state)
{
	struct run_options none = options, torch = options;
	struct job job;

	none.no_audit = true;
	job_init(&job, &none);
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW] + job.sent[OVERHEAD_ALWAYS], 0);
	overhead_done(&job.overhead);
	torch.source = ORDER_SOURCE_TORCH;
	job_init(&job, &torch);
	run_for(&job, 100 * NSEC_PER_SEC);
	assert_int_equal(job.sent[OVERHEAD_WINDOW], 0);
	assert_int_equal(job.sent[OVERHEAD_ALWAYS], 1);
	overhead_done(&job.overhead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_goes_first_and_both_are_measured),
		cmocka_unit_test(test_slices_are_whole_iterations_with_two_optimizers),
		cmocka_unit_test(test_one_worker_is_enough),
		cmocka_unit_test(test_a_measurement_is_repeated_after_its_interval),
		cmocka_unit_test(test_measurements_without_a_pause_follow_each_other),
		cmocka_unit_test(test_a_cost_that_grows_later_is_noticed),
		cmocka_unit_test(test_collectors_over_budget_are_switched_off_one_by_one),
		cmocka_unit_test(test_always_on_collectors_over_budget_are_off_but_for_marks),
		cmocka_unit_test(test_collectives_go_first_and_alone_if_that_is_enough),
		cmocka_unit_test(test_a_worker_alone_has_no_collectives_to_switch_off),
		cmocka_unit_test(
			test_a_cost_whose_interval_includes_the_budget_switches_nothing_off),
		cmocka_unit_test(test_a_very_noisy_job_is_measured_less_and_less_often),
		cmocka_unit_test(test_a_job_of_long_iterations_is_not_measured_all_the_time),
		cmocka_unit_test(test_audits_are_counted_as_cost),
		cmocka_unit_test(test_a_noisy_job_is_measured_again_soon),
		cmocka_unit_test(test_workers_without_pairs_are_ignored),
		cmocka_unit_test(test_a_measurement_without_results_is_repeated_soon),
		cmocka_unit_test(test_a_profile_cancels_a_measurement),
		cmocka_unit_test(test_a_job_that_is_not_steady_is_left_alone),
		cmocka_unit_test(test_a_slow_job_is_excused_until_averages_exclude_the_slices),
		cmocka_unit_test(test_collectors_too_expensive_to_measure_are_switched_off),
		cmocka_unit_test(test_a_job_that_stays_slow_switches_nothing_off),
		cmocka_unit_test(test_a_restarted_job_is_not_excused),
		cmocka_unit_test(test_a_restarted_worker_ends_a_measurement),
		cmocka_unit_test(test_a_hang_ends_a_measurement),
		cmocka_unit_test(test_a_hang_in_a_measurement_of_all_collectors_is_known),
		cmocka_unit_test(test_a_worker_that_never_reports_ends_a_measurement),
		cmocka_unit_test(test_workers_at_different_steps_are_not_measured),
		cmocka_unit_test(test_a_worker_that_ends_ends_a_measurement),
		cmocka_unit_test(test_no_audit_measures_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
