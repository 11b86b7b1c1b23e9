/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/distance/differ.h"

#include "base/stats.h"
#include "base/test_random.h"
#include "localize/test_job.h"

#include <math.h>
#include <string.h>

/* Eq. 8-11 implemented literally, with every peer counted. */
static void by_the_book(const struct differ_point *p, size_t n, double *delta, double *threshold)
{
	double top[3] = { 0, 0, 0 }, values[64], center;

	for (size_t i = 0; i < n; i++) {
		const double dims[3] = { p[i].beta, p[i].mu, p[i].sigma };

		for (int d = 0; d < 3; d++)
			top[d] = !isnan(dims[d]) && dims[d] > top[d] ? dims[d] : top[d];
	}
	for (size_t i = 0; i < n; i++) {
		const double a[3] = { p[i].beta, p[i].mu, p[i].sigma };
		size_t far = 0;

		for (size_t k = 0; k < n; k++) {
			const double b[3] = { p[k].beta, p[k].mu, p[k].sigma };
			double sum = 0;

			for (int d = 0; d < 3; d++) {
				if (!isnan(a[d]) && !isnan(b[d]) && top[d] > 0)
					sum += fabs(a[d] / top[d] - b[d] / top[d]);
			}
			far += sum >= 0.4;
		}
		delta[i] = (double)far / (double)n;
	}
	memcpy(values, delta, n * sizeof(*values));
	center = stats_median(values, n);
	*threshold = center + 5 * stats_mad(values, n, center);
}

static double maybe(uint64_t *seed, double absent)
{
	double value = test_uniform(seed);

	return test_uniform(seed) < absent ? (double)NAN : value;
}

static void random_points_are_judged_as_by_the_book(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct differ_point points[64];
		size_t n = 1 + (size_t)(test_uniform(&seed) * 60);
		double absent = round % 3 == 0 ? 0.3 : 0, mine[64], book[64], limit, book_limit;
		struct differ_options options = { .seed = 1, .exact = round % 2 == 0 };

		for (size_t i = 0; i < n; i++)
			points[i] =
				(struct differ_point){ test_uniform(&seed), maybe(&seed, absent),
						       maybe(&seed, absent) };
		assert_int_equal(differ_find(points, n, &options, mine, &limit), 0);
		by_the_book(points, n, book, &book_limit);
		for (size_t i = 0; i < n; i++)
			assert_float_equal(mine[i], book[i], 0);
		assert_float_equal(limit, book_limit, 0);
	}
}

static void make_large(struct differ_point points[1000])
{
	uint64_t seed = 9;

	for (size_t i = 0; i < 1000; i++)
		points[i] = (struct differ_point){ i < 3 ? 1 : 0.3 + 0.05 * test_uniform(&seed),
						   (double)NAN, (double)NAN };
}

static void a_seed_gives_the_same_sample_each_time(void **state)
{
	static struct differ_point points[1000];
	static double first[1000], again[1000];
	double limit, limit_again;

	(void)state;
	make_large(points);
	for (uint64_t seed = 1; seed < 6; seed++) {
		struct differ_options options = { .seed = seed };

		assert_int_equal(differ_find(points, 1000, &options, first, &limit), 0);
		assert_int_equal(differ_find(points, 1000, &options, again, &limit_again), 0);
		assert_memory_equal(first, again, sizeof(first));
		assert_float_equal(limit, limit_again, 0);
	}
}

static void a_sample_finds_what_all_peers_find(void **state)
{
	static struct differ_point points[1000];
	static double delta[1000];
	double limit;

	(void)state;
	make_large(points);
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct differ_options options = { .seed = seed, .exact = seed == 0 };

		assert_int_equal(differ_find(points, 1000, &options, delta, &limit), 0);
		for (size_t i = 0; i < 1000; i++)
			assert_int_equal(delta[i] > limit, i < 3);
	}
}

static void a_dimension_that_is_0_everywhere_stays_0(void **state)
{
	const struct differ_point points[4] = {
		{ 0.5, 0, 0 }, { 0.5, 0, 0 }, { 0.5, 0, 0 }, { 0.5, 0, 0 }
	};
	struct differ_options options = { .exact = true };
	double delta[4], limit;

	(void)state;
	assert_int_equal(differ_find(points, 4, &options, delta, &limit), 0);
	for (size_t i = 0; i < 4; i++)
		assert_float_equal(delta[i], 0, 0);
	assert_float_equal(limit, 0, 0);
}

/* A worker without samples isn't unlike those with some. */
static void an_absent_dimension_is_not_a_difference(void **state)
{
	const struct differ_point points[4] = { { 0.5, (double)NAN, (double)NAN },
						{ 0.5, 0.9, 0.9 },
						{ 0.5, 0.9, 0.9 },
						{ 0.5, 0.1, 0.9 } };
	struct differ_options options = { .exact = true };
	double delta[4], limit;

	(void)state;
	assert_int_equal(differ_find(points, 4, &options, delta, &limit), 0);
	assert_float_equal(delta[0], 0, 0);
	assert_float_equal(delta[1], 0.25, 0);
	assert_float_equal(delta[3], 0.5, 0);
}

static void a_single_worker_does_not_differ(void **state)
{
	const struct differ_point point = { 1, 1, 1 };
	double delta, limit;

	(void)state;
	assert_int_equal(differ_find(&point, 1, &(struct differ_options){ 0 }, &delta, &limit), 0);
	assert_float_equal(delta, 0, 0);
	assert_int_equal(differ_find(&point, 0, &(struct differ_options){ 0 }, &delta, &limit), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_points_are_judged_as_by_the_book),
		cmocka_unit_test(a_seed_gives_the_same_sample_each_time),
		cmocka_unit_test(a_sample_finds_what_all_peers_find),
		cmocka_unit_test(a_dimension_that_is_0_everywhere_stays_0),
		cmocka_unit_test(an_absent_dimension_is_not_a_difference),
		cmocka_unit_test(a_single_worker_does_not_differ),
	};

	return cmocka_run_group_tests_name("differ", tests, NULL, NULL);
}
