/* SPDX-License-Identifier: Apache-2.0 */
#include "live/overhead/series.h"

#include "base/test_random.h"
#include "model/thresholds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PAIRS 10

/* Audits of ten pairs around frac. */
static void add_audits(struct series *series, unsigned cnt, double frac, uint64_t *random)
{
	for (unsigned i = 0; i < cnt; i++) {
		double pairs[PAIRS];

		for (size_t j = 0; j < PAIRS; j++)
			pairs[j] = log1p(frac) + 0.02 * (test_uniform(random) - 0.5);
		series_add(series, pairs, PAIRS);
	}
}

static void test_a_cost_is_known_from_six_pairs_on(_unused_ void **state)
{
	const double pairs[] = { 0.01, NAN, 0.02, 0.03, INFINITY, 0.04, 0.05 };
	struct series series = { .cnt = 0 };

	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 0);
	series_add(&series, pairs, ARRAY_SIZE(pairs));
	assert_int_equal(series.cnt, 5);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 0);
	series_add(&series, pairs, 1);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 6);
	assert_int_equal(series_cost(&series, 0.99).pair_cnt, 0);
}

static void test_pairs_are_logarithms_of_ratios(_unused_ void **state)
{
	double pairs[PAIRS];
	struct series series = { .cnt = 0 };
	struct wire_cost cost;

	for (size_t i = 0; i < PAIRS; i++)
		pairs[i] = log(1.25);
	series_add(&series, pairs, PAIRS);
	cost = series_cost(&series, 0.95);
	assert_float_equal(cost.frac, 0.25, 1e-12);
	assert_float_equal((cost.frac - cost.low_frac), SLICES_ERROR_FRAC_MIN, 1e-9);
	assert_float_equal((cost.high_frac - cost.frac), SLICES_ERROR_FRAC_MIN, 1e-9);
}

static void test_more_audits_narrow_the_interval(_unused_ void **state)
{
	struct series series = { .cnt = 0 };
	uint64_t random = 3;
	struct wire_cost few, many;

	add_audits(&series, 2, 0.01, &random);
	few = series_cost(&series, 0.95);
	add_audits(&series, 30, 0.01, &random);
	many = series_cost(&series, 0.95);
	assert_true(many.high_frac - many.low_frac < 0.4 * (few.high_frac - few.low_frac));
	assert_true(many.low_frac < 0.01 && many.high_frac > 0.01);
}

static void test_two_audits_that_contradict_the_older_ones_replace_them(_unused_ void **state)
{
	struct series series = { .cnt = 0 };
	uint64_t random = 3;

	add_audits(&series, 20, 0.001, &random);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 20 * PAIRS);
	add_audits(&series, 1, 0.05, &random);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 21 * PAIRS); /* may be chance */
	add_audits(&series, 1, 0.05, &random);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 2 * PAIRS);
	assert_true(series_cost(&series, 0.95).low_frac > 0.03);
}

static void test_audits_that_contradict_each_other_replace_nothing(_unused_ void **state)
{
	struct series series = { .cnt = 0 };
	uint64_t random = 3;

	add_audits(&series, 20, 0.001, &random);
	add_audits(&series, 1, 0.05, &random);
	add_audits(&series, 1, -0.05, &random);
	add_audits(&series, 1, 0.001, &random);
	add_audits(&series, 1, -0.05, &random);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, 24 * PAIRS);
}

static void test_the_latest_pairs_are_kept(_unused_ void **state)
{
	struct series series = { .cnt = 0 };
	uint64_t random = 3;

	add_audits(&series, 10, 0.001, &random);
	series.cnt += SERIES_PAIRS_MAX; /* as after many more audits */
	for (size_t i = 0; i < SERIES_PAIRS_MAX; i++)
		series.pairs[i] = 0.001;
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, SERIES_PAIRS_MAX);
	add_audits(&series, 1, 0.002, &random);
	assert_float_equal(series.pairs[10 * PAIRS - 1], 0.001, 0.0);
	assert_float_not_equal(series.pairs[10 * PAIRS + PAIRS - 1], 0.001, 0.0);
	assert_int_equal(series_cost(&series, 0.95).pair_cnt, SERIES_PAIRS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cost_is_known_from_six_pairs_on),
		cmocka_unit_test(test_pairs_are_logarithms_of_ratios),
		cmocka_unit_test(test_more_audits_narrow_the_interval),
		cmocka_unit_test(test_two_audits_that_contradict_the_older_ones_replace_them),
		cmocka_unit_test(test_audits_that_contradict_each_other_replace_nothing),
		cmocka_unit_test(test_the_latest_pairs_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
