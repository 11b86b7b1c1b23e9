/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/signedrank.h"

#include "base/test_random.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define TWIN_MAX 60

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* All Walsh averages, sorted. Returns how many. */
static size_t all_walsh(const double *values, size_t cnt, double *ret)
{
	size_t out = 0;

	for (size_t i = 0; i < cnt; i++) {
		for (size_t j = i; j < cnt; j++)
			ret[out++] = 0.5 * (values[i] + values[j]);
	}
	qsort(ret, out, sizeof(*ret), by_value);
	return out;
}

/* The greatest number of averages to leave out, by all 2^cnt outcomes of the coins. */
static size_t twin_outside(size_t cnt, double tail)
{
	static unsigned below[TWIN_MAX * TWIN_MAX];
	double sum = 0.0;
	size_t v = 0;

	memset(below, 0, sizeof(below));
	for (uint32_t heads = 0; heads < 1u << cnt; heads++) {
		size_t statistic = 0;

		for (size_t rank = 1; rank <= cnt; rank++)
			statistic += (heads >> (rank - 1) & 1) != 0 ? rank : 0;
		below[statistic]++;
	}
	while (sum + below[v] / (double)(1u << cnt) <= tail)
		sum += below[v++] / (double)(1u << cnt);
	return v;
}

/* Six differences, the fewest for 95 %: the interval is from the least to the greatest. */
static void test_six_differences_give_their_range(_unused_ void **state)
{
	double diffs[] = { 3.0, -1.0, 2.0, 9.0, 4.0, 6.0 };
	struct signedrank rank;

	assert_int_equal(signedrank_interval(diffs, 6, 0.95, &rank), 0);
	assert_float_equal(rank.low, -1.0, 1e-12);
	assert_float_equal(rank.high, 9.0, 1e-12);
	assert_float_equal(rank.center, 4.0, 1e-12);
}

static void test_fewer_differences_than_the_confidence_needs_give_nothing(_unused_ void **state)
{
	double diffs[SIGNEDRANK_MAX + 1] = { 1, 2, 3, 4, 5, 6, 7 };
	struct signedrank rank = { .center = 7.0 };

	assert_int_equal(signedrank_interval(diffs, 0, 0.95, &rank), -ENODATA);
	assert_int_equal(signedrank_interval(diffs, 5, 0.95, &rank), -ENODATA);
	assert_int_equal(signedrank_interval(diffs, 7, 0.99, &rank), -ENODATA);
	assert_int_equal(signedrank_interval(diffs, SIGNEDRANK_MAX + 1, 0.95, &rank), -ENODATA);
	assert_float_equal(rank.center, 7.0, 0.0);
}

static void test_intervals_agree_with_all_walsh_averages(_unused_ void **state)
{
	static double walsh[TWIN_MAX * TWIN_MAX];
	uint64_t random = 5;

	for (size_t cnt = 6; cnt <= 16; cnt++) {
		double diffs[TWIN_MAX];
		struct signedrank rank;
		size_t total, out = twin_outside(cnt, 0.025);
		double middle;

		for (size_t i = 0; i < cnt; i++)
			diffs[i] = cnt % 2 == 0 ? (double)test_below(&random, 7) - 3.0
						: test_uniform(&random) - 0.3;
		total = all_walsh(diffs, cnt, walsh);
		assert_int_equal(signedrank_interval(diffs, cnt, 0.95, &rank), 0);
		assert_float_equal(rank.low, walsh[out - 1], 1e-9);
		assert_float_equal(rank.high, walsh[total - out], 1e-9);
		middle = 0.5 * (walsh[(total - 1) / 2] + walsh[total / 2]);
		assert_float_equal(rank.center, middle, 1e-9);
	}
}

/* The two ways to find the quantile meet: one more difference hardly changes the interval. */
static void test_the_normal_distribution_continues_the_exact_one(_unused_ void **state)
{
	struct signedrank rank[2];

	for (size_t more = 0; more < 2; more++) {
		double diffs[41];

		for (size_t i = 0; i < 40 + more; i++)
			diffs[i] = (double)i - 0.5 * (double)(39 + more);
		assert_int_equal(signedrank_interval(diffs, 40 + more, 0.95, &rank[more]), 0);
		assert_float_equal(rank[more].center, 0.0, 1e-9);
		assert_float_equal(rank[more].low, -rank[more].high, 1e-9);
	}
	assert_float_equal(rank[0].high, rank[1].high, 0.25);
}

/* Heavy tails, and one difference in ten that is a hundred times as far off. */
static double heavy(uint64_t *random)
{
	double value = tan(1.5 * (test_uniform(random) - 0.5) * 2.0);

	return test_below(random, 10) == 0 ? 100.0 * value : value;
}

static void test_intervals_contain_the_center_as_often_as_they_say(_unused_ void **state)
{
	static const size_t cnts[] = { 6, 10, 30, 60, 200 };
	uint64_t random = 11;

	for (size_t c = 0; c < ARRAY_SIZE(cnts); c++) {
		unsigned within = 0, below = 0;

		for (unsigned run = 0; run < 2000; run++) {
			double diffs[200];
			struct signedrank rank;

			for (size_t i = 0; i < cnts[c]; i++)
				diffs[i] = 1.0 + heavy(&random);
			assert_int_equal(signedrank_interval(diffs, cnts[c], 0.95, &rank), 0);
			within += rank.low <= 1.0 && rank.high >= 1.0;
			below += rank.high < 1.0;
		}
		assert_in_range(within, 1880, 2000); /* 1900 less two standard deviations */
		assert_in_range(below, 0, 65);
	}
}

static void test_equal_differences_are_their_own_interval(_unused_ void **state)
{
	double diffs[100];
	struct signedrank rank;

	for (size_t i = 0; i < 100; i++)
		diffs[i] = 0.25;
	assert_int_equal(signedrank_interval(diffs, 100, 0.95, &rank), 0);
	assert_float_equal(rank.low, 0.25, 0.0);
	assert_float_equal(rank.center, 0.25, 0.0);
	assert_float_equal(rank.high, 0.25, 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_six_differences_give_their_range),
		cmocka_unit_test(test_fewer_differences_than_the_confidence_needs_give_nothing),
		cmocka_unit_test(test_intervals_agree_with_all_walsh_averages),
		cmocka_unit_test(test_the_normal_distribution_continues_the_exact_one),
		cmocka_unit_test(test_intervals_contain_the_center_as_often_as_they_say),
		cmocka_unit_test(test_equal_differences_are_their_own_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
