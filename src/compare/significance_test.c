/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/significance.h"

#include "compare/alike.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void assert_near(double found, double expected, double tolerance)
{
	if (!(fabs(found - expected) <= tolerance))
		fail_msg("expected %.9g, found %.9g", expected, found);
}

/* One side exact, the other with mean t and variance 1: the tail of Student's t. */
static double tail(double t, double freedom)
{
	return significance_welch((struct estimate){ 0 }, (struct estimate){ t, 1, freedom });
}

/* With 1, 2 and many degrees of freedom the tail has a closed form. */
static void tails_agree_with_closed_forms(void **state)
{
	(void)state;
	for (int quarters = -24; quarters <= 24; quarters++) {
		double t = quarters / 4.0;

		assert_near(tail(t, 1), 1 - 2 / M_PI * atan(fabs(t)), 1e-10);
		assert_near(tail(t, 2), 1 - fabs(t) / sqrt(2 + t * t), 1e-10);
		assert_near(tail(t, 1e7), erfc(fabs(t) / sqrt(2)), 1e-6);
	}
}

/* Critical values of printed tables: 5 % two-sided. */
static void tails_agree_with_tables(void **state)
{
	static const double table[][2] = {
		{ 3, 3.182446 }, { 5, 2.570582 }, { 10, 2.228139 }, { 30, 2.042272 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_near(tail(table[i][1], table[i][0]), 0.05, 1e-6);
}

static void welch_agrees_with_a_worked_example(void **state)
{
	static const double a[] = { 27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
				    21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4 };
	static const double b[] = { 27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
				    24.8, 20.2, 21.9, 22.1, 22.9, 30.0, 23.9 };
	struct estimate of_a = estimate_of(a, ARRAY_SIZE(a)), of_b = estimate_of(b, ARRAY_SIZE(b));
	double t = (of_a.mean - of_b.mean) / sqrt(of_a.variance + of_b.variance);

	(void)state;
	assert_near(t, -2.835264, 1e-6);
	assert_near(significance_welch(of_a, of_b), 0.00845274, 1e-6);
}

static void what_does_not_vary_is_certain_or_says_nothing(void **state)
{
	struct estimate one = { .mean = 1 }, two = { .mean = 2 };

	(void)state;
	assert_true(isnan(significance_welch(one, one)));
	assert_true(significance_welch(one, two) == 0);
}

static void pairs_see_what_their_spread_hides(void **state)
{
	static const double before[] = { 10, 200, 3000, 40000 };
	static const double after[] = { 11, 201.1, 3000.9, 40001 };

	(void)state;
	assert_true(significance_paired(before, after, 4) < 0.001);
	assert_true(significance_welch(estimate_of(before, 4), estimate_of(after, 4)) > 0.9);
}

/* The example of the paper: of 15 p values the four smallest pass at 0.05. */
static void benjamini_and_hochberg_find_their_four(void **state)
{
	static const double p[] = { 0.7590, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298,
				    0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 1.0000 };
	double q[ARRAY_SIZE(p)];
	size_t order[ARRAY_SIZE(p)], passed = 0;

	(void)state;
	significance_adjust(p, ARRAY_SIZE(p), order, q);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_true(q[i] >= p[i] && q[i] <= 1);
		passed += q[i] <= 0.05;
	}
	assert_int_equal(passed, 4);
	assert_true(q[1] <= 0.05 && q[2] <= 0.05 && q[3] <= 0.05 && q[4] <= 0.05);
}

static void the_untested_is_not_counted(void **state)
{
	const double p[] = { 0.04, (double)NAN, 0.02 };
	size_t order[3];
	double q[3];

	(void)state;
	significance_adjust(p, 3, order, q);
	assert_near(q[0], 0.04, 1e-15);
	assert_true(isnan(q[1]));
	assert_near(q[2], 0.04, 1e-15);
	significance_adjust(p, 0, order, q);
}

static void names_are_alike_by_their_words(void **state)
{
	(void)state;
	assert_near(alike_names("a.b", "a_b"), 1, 0);
	assert_near(alike_names("aten::add", "aten::mul"), 1.0 / 3, 1e-12);
	assert_near(alike_names("train.py(12): main", "train.py(99): main"), 1, 0);
	assert_true(alike_names("_SingleProcessDataLoaderIter.__next__",
				"_MultiProcessingDataLoaderIter.__next__") >= 0.5);
	assert_true(alike_names("ampere_sgemm_128x64_tn", "volta_sgemm_128x64_tn") >= 0.5);
	assert_true(alike_names("gemm", "softmax") == 0);
	assert_near(alike_names("", ""), 1, 0);
	assert_near(alike_names("<>", "()"), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tails_agree_with_closed_forms),
		cmocka_unit_test(tails_agree_with_tables),
		cmocka_unit_test(welch_agrees_with_a_worked_example),
		cmocka_unit_test(what_does_not_vary_is_certain_or_says_nothing),
		cmocka_unit_test(pairs_see_what_their_spread_hides),
		cmocka_unit_test(benjamini_and_hochberg_find_their_four),
		cmocka_unit_test(the_untested_is_not_counted),
		cmocka_unit_test(names_are_alike_by_their_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
