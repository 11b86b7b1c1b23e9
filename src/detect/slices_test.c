/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/slices.h"

#include "base/clock.h"
#include "detect/signedrank.h"
#include "detect/test_detect.h"
#include "format/shared/block.h"

#include <errno.h>
#include <math.h>

#define STEP_NS (20 * NSEC_PER_MSEC)
#define STEPS 310 /* of a job; the slices are in it */

static const struct slices_plan plan = {
	.seed = 7, .start_step = 100, .slice_steps = 10, .slice_cnt = 20, .stride = 1
};

struct job {
	double cost_frac;
	double noise_frac;	      /* white: half the range */
	double kept_frac;	      /* AR(1): what the next iteration keeps of the noise */
	double drift_frac;	      /* over the whole */
	double wave_frac, wave_steps; /* a sine, its phase by the seed */
	unsigned pause_every;	      /* iterations; a pause takes five */
	uint64_t lost_every;	      /* marks that never arrive */
	double switch_frac;	      /* what a switch takes */
	uint64_t seed;
};

static struct slices_plan plan_of(const struct job *job)
{
	struct slices_plan own = plan;

	own.seed = overhead_seed(job->seed, plan.start_step);
	return own;
}

static bool is_on(const struct slices_plan *own, uint64_t step)
{
	uint64_t slice = (step - MIN(step, own->start_step)) / own->slice_steps;

	return step >= own->start_step && slice < own->slice_cnt &&
	       overhead_slice_is_on(own->seed, slice);
}

/* The time of one iteration without the collectors, in usual ones. */
static double usual(const struct job *job, uint64_t step, double *noise, uint64_t *random)
{
	double phase = 6.2831853 * splitmix_fraction(splitmix_finish(job->seed));
	double wave =
		job->wave_steps > 0 ? sin(6.2831853 * (double)step / job->wave_steps + phase) : 0.0;
	bool pause = job->pause_every > 0 && (step + job->seed) % job->pause_every == 0;

	*noise = job->kept_frac * *noise + 2.0 * job->noise_frac * (splitmix_uniform(random) - 0.5);
	return fmax(1.0 + *noise + job->drift_frac * (double)step / STEPS + job->wave_frac * wave +
			    (pause ? 5.0 : 0.0),
		    0.05);
}

/* Iterations from long before the slices to long after. */
static void run_job(const struct job *job, struct slices *slices)
{
	struct slices_plan own = plan_of(job);
	uint64_t random = job->seed;
	int64_t now_ns = 5 * NSEC_PER_SEC;
	double noise = 0.0;

	assert_int_equal(slices_begin(slices, &own), 0);
	for (uint64_t step = 1; step < STEPS; step++) {
		double factor = usual(job, step, &noise, &random) *
				(is_on(&own, step) ? 1.0 + job->cost_frac : 1.0);

		if (job->lost_every == 0 || step % job->lost_every != 0)
			slices_mark(slices, step, now_ns);
		if (is_on(&own, step) != is_on(&own, step - 1))
			factor += job->switch_frac;
		now_ns += (int64_t)(factor * STEP_NS);
	}
}

/* The interval of all complete pairs, as costs. */
static struct signedrank interval_of(const struct slices *slices)
{
	double pairs[SLICES_PAIRS_MAX];
	struct signedrank rank;
	size_t cnt = slices_pairs(slices, pairs), known = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!isnan(pairs[i]))
			pairs[known++] = pairs[i];
	}
	assert_int_equal(signedrank_interval(pairs, known, 0.95, &rank), 0);
	rank.center = expm1(rank.center);
	rank.low = expm1(rank.low);
	rank.high = expm1(rank.high);
	return rank;
}

static void test_cost_of_a_steady_job_is_exact(_unused_ void **state)
{
	struct slices slices;
	double pairs[SLICES_PAIRS_MAX];

	run_job(&(struct job){ .cost_frac = 0.02, .switch_frac = 3.0 }, &slices);
	assert_true(slices.over);
	assert_int_equal(slices_pairs(&slices, pairs), 10);
	for (size_t i = 0; i < 10; i++)
		assert_float_equal(pairs[i], log(1.02), 1e-6);
}

/* What switching costs is no cost of the collectors, and not forgotten. */
static void test_switching_is_counted_apart(_unused_ void **state)
{
	const struct job job = { .cost_frac = 0.02, .switch_frac = 3.0, .seed = 5 };
	struct slices_plan own = plan_of(&job);
	struct slices slices;
	unsigned switches = 0;

	for (uint64_t slice = 1; slice < own.slice_cnt; slice++)
		switches += overhead_slice_is_on(own.seed, slice) !=
			    overhead_slice_is_on(own.seed, slice - 1);
	run_job(&job, &slices);
	assert_float_equal(slices_switching_ns(&slices) / STEP_NS, 3.0 * switches, 1e-3);
	run_job(&(struct job){ .cost_frac = 0.02 }, &slices);
	assert_float_equal(slices_switching_ns(&slices) / STEP_NS, 0.0, 1e-3);
}

static void test_a_coin_decides_which_slice_of_a_pair_is_first(_unused_ void **state)
{
	unsigned heads = 0, repeated = 0;

	for (uint64_t id = 1; id <= 100; id++) {
		uint64_t seed = overhead_seed(id, 1000);
		bool before = false;

		for (uint64_t pair = 0; pair < 10; pair++) {
			bool first = overhead_slice_is_on(seed, 2 * pair);

			assert_int_not_equal(first, overhead_slice_is_on(seed, 2 * pair + 1));
			heads += first;
			repeated += pair > 0 && first == before;
			before = first;
		}
	}
	assert_in_range(heads, 440, 560);    /* of 1000: four standard deviations */
	assert_in_range(repeated, 390, 510); /* of 900 */
}

/* Two optimizers: 18 ms, then 2 ms, and only the short part becomes slower. */
static void test_marks_at_unequal_distances_count_by_whole_iterations(_unused_ void **state)
{
	struct slices_plan pairs = plan;
	struct slices slices;
	int64_t now_ns = 1;

	pairs.stride = 2;
	for (uint64_t lost = 100; lost < 130; lost++) {
		assert_int_equal(slices_begin(&slices, &pairs), 0);
		for (uint64_t step = 100; step < 320; step++) {
			if (step != lost)
				slices_mark(&slices, step, now_ns);
			now_ns += step % 2 == 0 ? 18 * NSEC_PER_MSEC
						: (is_on(&pairs, step) ? 4 : 2) * NSEC_PER_MSEC;
		}
		assert_float_equal(interval_of(&slices).center, 0.1, 1e-6);
	}
}

static void test_lost_marks_change_little(_unused_ void **state)
{
	struct slices slices;

	for (uint64_t every = 2; every < 8; every++) {
		/* A bound is lost: one iteration with a switch is inside. */
		run_job(&(struct job){ .cost_frac = 0.05, .lost_every = every, .switch_frac = 0.3 },
			&slices);
		assert_float_equal(interval_of(&slices).center, 0.05, 0.04);
	}
}

struct honesty {
	unsigned within, negative; /* jobs whose interval contains the cost; is below 0 */
};

static struct honesty honesty_of(struct job job, uint64_t job_cnt)
{
	struct honesty ret = { 0, 0 };

	for (uint64_t seed = 1; seed <= job_cnt; seed++) {
		struct slices slices;
		struct signedrank rank;

		job.seed = seed;
		run_job(&job, &slices);
		rank = interval_of(&slices);
		ret.within += rank.low <= job.cost_frac && rank.high >= job.cost_frac;
		ret.negative += rank.high < 0.0;
	}
	return ret;
}

/* 95.1 % and 2.4 % by design, with ten pairs; the limits are three standard deviations away. */
static void expect_honest(struct job job)
{
	struct honesty honesty = honesty_of(job, 1000);

	assert_in_range(honesty.within, 930, 1000);
	assert_in_range(honesty.negative, 0, 39);
}

static void test_white_noise_is_within_the_interval(_unused_ void **state)
{
	expect_honest((struct job){ .noise_frac = 0.1 });
	expect_honest((struct job){ .cost_frac = 0.01, .noise_frac = 0.1 });
}

static void test_noise_that_lasts_is_within_the_interval(_unused_ void **state)
{
	expect_honest((struct job){ .noise_frac = 0.05, .kept_frac = 0.9 });
	expect_honest((struct job){ .cost_frac = 0.01, .noise_frac = 0.02, .kept_frac = 0.99 });
	expect_honest((struct job){ .noise_frac = 0.01, .kept_frac = 1.0 }); /* a random walk */
}

/* Waves as long as two slices are what slices by turns mistake for a cost. */
static void test_waves_are_within_the_interval(_unused_ void **state)
{
	static const double lengths[] = { 7.0, 10.0, 20.0, 20.5, 40.0, 60.0, 300.0 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		expect_honest((struct job){
			.noise_frac = 0.01, .wave_frac = 0.2, .wave_steps = lengths[i] });
}

static void test_pauses_are_within_the_interval(_unused_ void **state)
{
	static const unsigned every[] = { 9, 10, 20, 21, 40, 50 };

	for (size_t i = 0; i < ARRAY_SIZE(every); i++)
		expect_honest((struct job){
			.cost_frac = 0.01, .noise_frac = 0.02, .pause_every = every[i] });
}

static void test_drift_is_within_the_interval(_unused_ void **state)
{
	expect_honest((struct job){ .noise_frac = 0.001, .drift_frac = 1.0 });
	expect_honest((struct job){ .noise_frac = 0.02, .drift_frac = -0.5 });
}

static void test_few_jobs_show_a_negative_cost_whatever_their_noise(_unused_ void **state)
{
	struct honesty honesty = honesty_of((struct job){ .noise_frac = 0.02,
							  .kept_frac = 0.8,
							  .drift_frac = 0.3,
							  .wave_frac = 0.1,
							  .wave_steps = 20.0,
							  .pause_every = 20 },
					    6000);

	assert_in_range(honesty.within, 6000 * 0.945, 6000);
	assert_in_range(honesty.negative, 0, 6000 * 0.03);
}

static void test_slices_that_are_not_complete_have_no_pair(_unused_ void **state)
{
	struct slices slices;
	double pairs[SLICES_PAIRS_MAX];

	assert_int_equal(slices_begin(&slices, &plan), 0);
	assert_int_equal(slices_pairs(&slices, pairs), 10);
	for (size_t i = 0; i < 10; i++)
		assert_true(isnan(pairs[i]));
	for (uint64_t step = 100; step < 140; step++)
		slices_mark(&slices, step, (int64_t)step * STEP_NS);
	assert_int_equal(slices_pairs(&slices, pairs), 10);
	assert_false(isnan(pairs[0]));
	assert_false(isnan(pairs[1]));
	assert_true(isnan(pairs[2]));
	assert_false(slices.over);
}

static void test_an_invalid_plan_is_refused(_unused_ void **state)
{
	static const struct slices_plan plans[] = {
		{ 0, 0, 1, 4, 1 }, { 0, 0, 0, 4, 1 },
		{ 0, 0, 5, 0, 1 }, { 0, 0, 5, 5, 1 },
		{ 0, 0, 5, 4, 0 }, { 0, 0, 5, 4, 2 },
		{ 0, 0, 2, 4, 2 }, { 0, 0, 5, SLICES_MAX + 2, 1 },
	};
	struct slices slices;

	for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
		assert_int_equal(slices_begin(&slices, &plans[i]), -EINVAL);
}

/* Marks of a hostile worker: any step, any time. */
static void test_any_marks_are_harmless(_unused_ void **state)
{
	uint64_t random = 7;
	struct slices slices;
	double pairs[SLICES_PAIRS_MAX];

	assert_int_equal(slices_begin(&slices, &plan), 0);
	for (unsigned i = 0; i < 100000; i++)
		slices_mark(&slices, splitmix_next(&random) % 400, (int64_t)splitmix_next(&random));
	slices_mark(&slices, UINT64_MAX, INT64_MAX);
	assert_int_equal(slices_pairs(&slices, pairs), 10);
	for (size_t i = 0; i < 10; i++)
		assert_false(isinf(pairs[i]));
	assert_true(isfinite(slices_switching_ns(&slices)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_of_a_steady_job_is_exact),
		cmocka_unit_test(test_switching_is_counted_apart),
		cmocka_unit_test(test_a_coin_decides_which_slice_of_a_pair_is_first),
		cmocka_unit_test(test_marks_at_unequal_distances_count_by_whole_iterations),
		cmocka_unit_test(test_lost_marks_change_little),
		cmocka_unit_test(test_white_noise_is_within_the_interval),
		cmocka_unit_test(test_noise_that_lasts_is_within_the_interval),
		cmocka_unit_test(test_waves_are_within_the_interval),
		cmocka_unit_test(test_pauses_are_within_the_interval),
		cmocka_unit_test(test_drift_is_within_the_interval),
		cmocka_unit_test(test_few_jobs_show_a_negative_cost_whatever_their_noise),
		cmocka_unit_test(test_slices_that_are_not_complete_have_no_pair),
		cmocka_unit_test(test_an_invalid_plan_is_refused),
		cmocka_unit_test(test_any_marks_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
