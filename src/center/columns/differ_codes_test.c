/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/differ_codes.h"

#include "base/test_random.h"
#include "model/code16.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MAX_ROWS 1500
#define MAX_ABSENT 40

static uint64_t rng = 7;

static double some(void)
{
	return test_uniform(&rng);
}

/* A group of members in columns, and the same as differ.h wants it; the absent come last. */
struct group {
	uint16_t columns[3][MAX_ROWS];
	struct differ_point points[MAX_ROWS + MAX_ABSENT];
	struct differ_codes codes;
};

static struct group group;

static void set_row(size_t row, double beta, double mu, double sigma)
{
	const double values[3] = { beta, mu, sigma };

	for (int dim = 0; dim < 3; dim++)
		group.columns[dim][row] = code16_of_frac(values[dim]);
	group.points[row] = (struct differ_point){ code16_frac(group.columns[0][row]),
						   code16_frac(group.columns[1][row]),
						   code16_frac(group.columns[2][row]) };
}

static void finish(size_t row_cnt, size_t absent_cnt)
{
	group.codes = (struct differ_codes){ group.columns[0], group.columns[1], group.columns[2],
					     row_cnt, absent_cnt };
	for (size_t i = 0; i < absent_cnt; i++)
		group.points[row_cnt + i] = (struct differ_point){ 0, (double)NAN, (double)NAN };
}

/* --- worlds --- */

static void scattered(size_t row)
{
	set_row(row, some(), some(), some());
}

static void clustered(size_t row)
{
	double center = (double)(size_t)(some() * 4) / 4;

	set_row(row, 0.02 + center / 9 + 0.001 * some(), 0.5 + 0.01 * some(), center * some());
}

/* Differences of exactly delta, and next to it. */
static void on_the_edge(size_t row)
{
	double step = some() < 0.3 ? 0x1p-11 : 0;

	set_row(row, some() < 0.5 ? 1 : 0.6 + step, some() < 0.5 ? 0.5 : 0.3 + step,
		some() < 0.5 ? 0.25 : 0.05);
}

static void multiples_of_a_fifth(size_t row)
{
	set_row(row, floor(some() * 6) / 5, floor(some() * 6) / 5, floor(some() * 6) / 5);
}

static void with_absent_numbers(size_t row)
{
	set_row(row, some() / 3, some() < 0.3 ? (double)NAN : some(),
		some() < 0.3 ? (double)NAN : some());
}

static void only_beta(size_t row)
{
	set_row(row, some() < 0.9 ? 0.3 + 0.01 * some() : some(), (double)NAN, (double)NAN);
}

static void almost_nothing(size_t row)
{
	set_row(row, floor(some() * 4) * 0x1p-30, floor(some() * 3) * 0x1p-30, 0);
}

static void (*const worlds[])(size_t row) = {
	scattered,	     clustered, on_the_edge,	multiples_of_a_fifth,
	with_absent_numbers, only_beta, almost_nothing,
};

static void build(size_t world, size_t row_cnt, size_t absent_cnt)
{
	for (size_t row = 0; row < row_cnt; row++)
		worlds[world](row);
	finish(row_cnt, absent_cnt);
}

/* --- the twin --- */

static void assert_as_differ(const struct differ_options *options)
{
	static double delta[MAX_ROWS + MAX_ABSENT];
	static uint32_t far[MAX_ROWS], order[MAX_ROWS + MAX_ABSENT], sample[DIFFER_PEERS];
	size_t rows = group.codes.row_cnt, cnt = rows + group.codes.absent_cnt;
	size_t want = MIN(cnt, (size_t)DIFFER_PEERS);
	struct differ_found found;
	bool exceeded = false;
	double limit;

	assert_int_equal(differ_find(group.points, cnt, options, delta, &limit), 0);
	differ_draw(order, cnt, want, options->seed);
	for (size_t i = 0; i < want; i++)
		sample[i] = order[i] < rows ? order[i] : DIFFER_NO_ROW;
	assert_int_equal(options->exact
				 ? differ_codes_exact(&group.codes, far, &found)
				 : differ_codes_sampled(&group.codes, sample, want, far, &found),
			 0);
	assert_int_equal(found.of, options->exact ? cnt : want);
	for (size_t i = 0; i < rows; i++) {
		assert_float_equal((double)far[i] / found.of, delta[i], 0);
		exceeded |= delta[i] > limit;
	}
	if (group.codes.absent_cnt > 0)
		assert_float_equal((double)found.far_absent / found.of, delta[rows], 0);
	assert_float_equal(found.threshold, limit, 0);
	assert_int_equal(found.exceeded, exceeded);
}

static void codes_are_judged_as_numbers_are(void **state)
{
	(void)state;
	for (size_t round = 0; round < 350; round++) {
		struct differ_options options = { .seed = round, .exact = round % 2 == 0 };

		build(round / 2 % ARRAY_SIZE(worlds), 1 + (size_t)(some() * 300),
		      round % 3 == 0 ? (size_t)(some() * MAX_ABSENT) : 0);
		assert_as_differ(&options);
	}
}

static void boxes_of_boxes_are_judged_as_all_pairs_are(void **state)
{
	(void)state;
	for (size_t world = 0; world < ARRAY_SIZE(worlds); world++) {
		build(world, MAX_ROWS, world % 2 * MAX_ABSENT);
		assert_as_differ(&(struct differ_options){ .exact = true });
		assert_as_differ(&(struct differ_options){ .seed = 3 });
	}
}

static void some_rows_are_judged_as_with_all(void **state)
{
	static uint32_t far[MAX_ROWS], of_some[MAX_ROWS], rows[MAX_ROWS];

	(void)state;
	for (size_t world = 0; world < ARRAY_SIZE(worlds); world++) {
		struct differ_exact *exact;
		struct differ_found all, found;
		uint32_t absent, cnt = 0;

		build(world, MAX_ROWS, world % 2 * MAX_ABSENT);
		assert_int_equal(differ_codes_exact(&group.codes, far, &all), 0);
		assert_int_equal(differ_exact_open(&group.codes, &exact), 0);
		for (uint32_t row = 3; row < MAX_ROWS; row += 5)
			rows[cnt++] = row;
		assert_int_equal(differ_exact_count(exact, rows, cnt, of_some, &absent), 0);
		for (uint32_t i = 0; i < cnt; i++)
			assert_int_equal(of_some[i], far[rows[i]]);
		assert_int_equal(absent, all.far_absent);
		for (uint32_t row = 0; row < MAX_ROWS; row++) {
			rows[row] = row;
		}
		assert_int_equal(differ_exact_threshold(exact, rows, MAX_ROWS,
							group.codes.absent_cnt, &found),
				 0);
		assert_float_equal(found.threshold, all.threshold, 0);
		differ_exact_close(exact);
	}
}

static void a_group_without_workers_has_no_differences(void **state)
{
	struct differ_found found;

	(void)state;
	finish(0, 0);
	assert_int_equal(differ_codes_exact(&group.codes, NULL, &found), 0);
	assert_int_equal(differ_codes_sampled(&group.codes, NULL, 0, NULL, &found), 0);
	assert_float_equal(found.threshold, 0, 0);
	assert_false(found.exceeded);
	finish(0, 5);
	assert_int_equal(differ_codes_exact(&group.codes, NULL, &found), 0);
	assert_float_equal(found.threshold, 0, 0);
	assert_int_equal(found.far_absent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_judged_as_numbers_are),
		cmocka_unit_test(boxes_of_boxes_are_judged_as_all_pairs_are),
		cmocka_unit_test(some_rows_are_judged_as_with_all),
		cmocka_unit_test(a_group_without_workers_has_no_differences),
	};

	return cmocka_run_group_tests_name("differ_codes", tests, NULL, NULL);
}
