/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/slices.h"

#include "base/clock.h"
#include "detect/test_detect.h"

#include <errno.h>
#include <math.h>

#define STEP_NS (20 * NSEC_PER_MSEC)

static const struct slices_plan plan = {
	.start_step = 100, .slice_steps = 10, .slice_cnt = 21, .stride = 1
};

struct job {
	double cost_frac, noise_frac, drift_frac; /* drift: over the whole */
	uint64_t lost_every;			  /* marks that never arrive */
	uint64_t seed;
};

/* Iterations from long before the slices to long after. */
static void run_job(const struct job *job, struct slices *slices)
{
	uint64_t state = job->seed;
	int64_t now_ns = 5 * NSEC_PER_SEC;

	assert_int_equal(slices_begin(slices, &plan), 0);
	for (uint64_t step = 1; step < 500; step++) {
		uint64_t slice = (step - MIN(step, plan.start_step)) / plan.slice_steps;
		bool on = step >= plan.start_step && slice < plan.slice_cnt && slice % 2 == 1;
		double factor = 1.0 + job->drift_frac * (double)step / 500.0 +
				job->noise_frac * (splitmix_uniform(&state) - 0.5) +
				(on ? job->cost_frac : 0.0);

		if (job->lost_every == 0 || step % job->lost_every != 0)
			slices_mark(slices, step, now_ns);
		/* What switching costs is not what the collectors cost. */
		if (step >= plan.start_step && (step - plan.start_step) % plan.slice_steps == 0)
			factor += 3.0;
		now_ns += (int64_t)(factor * STEP_NS);
	}
}

static void test_cost_of_a_steady_job_is_exact(void **state)
{
	struct slices slices;
	struct slices_cost cost;

	(void)state;
	run_job(&(struct job){ .cost_frac = 0.02 }, &slices);
	assert_true(slices.over);
	assert_int_equal(slices_cost(&slices, &cost), 0);
	assert_int_equal(cost.pair_cnt, 10);
	assert_float_equal(cost.frac, 0.02, 1e-6);
}

/* Two optimizers: 18 ms, then 2 ms, and only the short part becomes slower. */
static void test_marks_at_unequal_distances_count_by_whole_iterations(void **state)
{
	struct slices_plan pairs = plan;
	struct slices slices;
	struct slices_cost cost;
	int64_t now_ns = 1;

	(void)state;
	pairs.stride = 2;
	for (uint64_t lost = 100; lost < 130; lost++) {
		assert_int_equal(slices_begin(&slices, &pairs), 0);
		for (uint64_t step = 100; step < 320; step++) {
			bool on = (step - 100) / 10 % 2 == 1;

			if (step != lost)
				slices_mark(&slices, step, now_ns);
			now_ns += step % 2 == 0 ? 18 * NSEC_PER_MSEC : (on ? 4 : 2) * NSEC_PER_MSEC;
		}
		assert_int_equal(slices_cost(&slices, &cost), 0);
		assert_float_equal(cost.frac, 0.1, 1e-6);
	}
}

static void test_drift_costs_nothing(void **state)
{
	struct slices slices;
	struct slices_cost cost;

	(void)state;
	run_job(&(struct job){ .drift_frac = 1.0 }, &slices);
	assert_int_equal(slices_cost(&slices, &cost), 0);
	assert_float_equal(cost.frac, 0.0, 1e-4);
}

static void test_lost_marks_change_nothing(void **state)
{
	struct slices slices;
	struct slices_cost cost;

	(void)state;
	for (uint64_t every = 2; every < 8; every++) {
		run_job(&(struct job){ .cost_frac = 0.05, .lost_every = every }, &slices);
		assert_int_equal(slices_cost(&slices, &cost), 0);
		assert_float_equal(cost.frac, 0.05, 0.35 / 8); /* a bound lost: one switch inside */
	}
}

static void test_noise_is_within_its_error(void **state)
{
	unsigned near = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct slices slices;
		struct slices_cost cost;

		run_job(&(struct job){ .cost_frac = 0.01, .noise_frac = 0.1, .seed = seed },
			&slices);
		assert_int_equal(slices_cost(&slices, &cost), 0);
		near += fabs(cost.frac - 0.01) < 2.0 * cost.error_frac;
	}
	assert_in_range(near, 170, 200); /* 95 % for normal noise and many pairs */
}

static void test_one_pause_is_forgiven(void **state)
{
	struct slices slices;
	struct slices_cost cost;
	int64_t now_ns = 1;

	(void)state;
	assert_int_equal(slices_begin(&slices, &plan), 0);
	for (uint64_t step = 100; step < 320; step++) {
		slices_mark(&slices, step, now_ns);
		now_ns += step == 115 ? 100 * STEP_NS : STEP_NS;
	}
	assert_int_equal(slices_cost(&slices, &cost), 0);
	assert_float_equal(cost.frac, 0.0, 1e-9);
}

static void test_too_few_pairs_give_no_result(void **state)
{
	struct slices slices;
	struct slices_cost cost;

	(void)state;
	assert_int_equal(slices_begin(&slices, &plan), 0);
	assert_int_equal(slices_cost(&slices, &cost), -ENODATA);
	for (uint64_t step = 100; step < 140; step++)
		slices_mark(&slices, step, (int64_t)step * STEP_NS);
	assert_int_equal(slices_cost(&slices, &cost), -ENODATA);
	assert_false(slices.over);
}

static void test_an_invalid_plan_is_refused(void **state)
{
	static const struct slices_plan plans[] = {
		{ 0, 1, 5, 1 }, { 0, 0, 5, 1 }, { 0, 5, 2, 1 }, { 0, 5, SLICES_MAX + 1, 1 },
		{ 0, 5, 5, 0 }, { 0, 5, 5, 2 }, { 0, 2, 5, 2 },
	};
	struct slices slices;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
		assert_int_equal(slices_begin(&slices, &plans[i]), -EINVAL);
}

/* Marks of a hostile worker: any step, any time. */
static void test_any_marks_are_harmless(void **state)
{
	uint64_t random = 7;
	struct slices slices;
	struct slices_cost cost;

	(void)state;
	assert_int_equal(slices_begin(&slices, &plan), 0);
	for (unsigned i = 0; i < 100000; i++)
		slices_mark(&slices, splitmix_next(&random) % 400, (int64_t)splitmix_next(&random));
	slices_mark(&slices, UINT64_MAX, INT64_MAX);
	if (slices_cost(&slices, &cost) == 0)
		assert_true(isfinite(cost.frac) && isfinite(cost.error_frac));
}

static void test_two_measurements_have_a_smaller_error_than_one(void **state)
{
	struct slices_cost sum = { 0 };

	(void)state;
	slices_combine(&sum, &(struct slices_cost){ 0.01, 0.002, 10 });
	assert_float_equal(sum.frac, 0.01, 1e-12);
	slices_combine(&sum, &(struct slices_cost){ 0.03, 0.002, 10 });
	assert_float_equal(sum.frac, 0.02, 1e-12);
	assert_true(fabs(sum.error_frac - 0.002 * sqrt(0.5)) < 1e-12);
	assert_int_equal(sum.pair_cnt, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_of_a_steady_job_is_exact),
		cmocka_unit_test(test_marks_at_unequal_distances_count_by_whole_iterations),
		cmocka_unit_test(test_drift_costs_nothing),
		cmocka_unit_test(test_lost_marks_change_nothing),
		cmocka_unit_test(test_noise_is_within_its_error),
		cmocka_unit_test(test_one_pause_is_forgiven),
		cmocka_unit_test(test_too_few_pairs_give_no_result),
		cmocka_unit_test(test_an_invalid_plan_is_refused),
		cmocka_unit_test(test_any_marks_are_harmless),
		cmocka_unit_test(test_two_measurements_have_a_smaller_error_than_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
