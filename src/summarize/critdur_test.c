/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/critdur.h"

#include "summarize/test_trace.h"

#include <errno.h>
#include <math.h>

static struct critdur found(const double *util, size_t cnt)
{
	struct critdur run = { 99, 99 };

	assert_int_equal(critdur_find(util, cnt, &run), 0);
	return run;
}

#define ASSERT_RUN(first, last, ...)                                   \
	do {                                                           \
		const double _util[] = { __VA_ARGS__ };                \
		struct critdur _run = found(_util, ARRAY_SIZE(_util)); \
		assert_int_equal(_run.begin, first);                   \
		assert_int_equal(_run.end, last);                      \
	} while (0)

static void critdur_leaves_out_the_waiting_before_a_transfer(void **state)
{
	(void)state;
	ASSERT_RUN(6, 9, 0, 0, 0, 0, 0, 0, 0.9, 0.9, 0.9);
	ASSERT_RUN(0, 3, 0.5, 0.5, 0.5, 0, 0, 0);
	ASSERT_RUN(2, 5, 0, 0, 1, 1, 1, 0, 0, 0);
}

static void critdur_leaves_out_a_small_part_behind_a_gap(void **state)
{
	(void)state;
	/* 0.1 of 3.1 may be left out: the run needs no gap. */
	ASSERT_RUN(5, 8, 0.1, 0, 0, 0, 0, 1, 1, 1);
	/* 1 of 4 may not be left out: the run includes the gap of four zeros. */
	ASSERT_RUN(0, 8, 1, 0, 0, 0, 0, 1, 1, 1);
}

static void critdur_takes_the_smallest_gap_that_suffices(void **state)
{
	(void)state;
	/* The middle four hold 4 of 4.5; the ends are separated by longer gaps. */
	ASSERT_RUN(3, 9, 0.25, 0, 0, 1, 1, 0, 0.5, 0.5, 1, 0, 0, 0.25);
}

static void critdur_keeps_exactly_four_fifths(void **state)
{
	(void)state;
	ASSERT_RUN(0, 4, 1, 1, 1, 1, 0, 0, 1);
	ASSERT_RUN(0, 6, 1, 1, 1, 0, 0, 1);
}

static void critdur_of_steady_use_is_everything(void **state)
{
	(void)state;
	ASSERT_RUN(0, 4, 0.3, 0.3, 0.3, 0.3);
	ASSERT_RUN(0, 1, 1);
}

static void critdur_without_activity_is_empty(void **state)
{
	struct critdur run;

	(void)state;
	ASSERT_RUN(0, 0, 0, 0, 0);
	run = found(NULL, 0);
	assert_int_equal(run.begin, run.end);
}

static void critdur_refuses_values_outside_0_to_1(void **state)
{
	const double bad[] = { (double)NAN, -0.01, 1.01, (double)INFINITY };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const double util[] = { 0.5, bad[i] };
		struct critdur run = { 7, 8 };

		assert_int_equal(critdur_find(util, 2, &run), -EINVAL);
		assert_int_equal(run.begin, 7);
	}
}

/* The definition, literally: every interval, its sum and its longest run of zeros. */
static size_t brute_force(const double *util, size_t cnt, size_t *ret_best, struct critdur *ret)
{
	size_t best_gap = SIZE_MAX, holders = 0;
	double total = 0;

	for (size_t i = 0; i < cnt; i++)
		total += util[i];
	for (size_t b = 0; b < cnt; b++) {
		size_t zeros = 0, gap = 0;
		double sum = 0;

		for (size_t e = b; e < cnt && util[b] > 0; e++) {
			zeros = util[e] > 0 ? 0 : zeros + 1;
			gap = MAX(gap, zeros);
			sum += util[e];
			/* Trimmed, and maximal for this gap. */
			if (!(util[e] > 0) || sum < CRITDUR_SHARE * total || gap > best_gap)
				continue;
			if (gap < best_gap || (b <= ret->begin && e + 1 >= ret->end))
				*ret = (struct critdur){ b, e + 1 };
			best_gap = gap;
		}
	}
	*ret_best = best_gap;
	for (size_t b = 0, e = 0; b < cnt; b = e + 1) { /* maximal runs with that gap */
		size_t zeros = 0;
		double sum = 0;

		for (e = b; e < cnt && zeros <= best_gap; e++) {
			zeros = util[e] > 0 ? 0 : zeros + 1;
			sum += util[e];
		}
		holders += sum >= CRITDUR_SHARE * total;
		e--;
	}
	return holders;
}

static void critdur_agrees_with_trying_every_interval(void **state)
{
	uint64_t r = 42;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t cnt = 1 + (size_t)test_below(&r, 14), gap;
		struct critdur want = { 0, 0 }, run;
		double util[14], total = 0;

		/* Sixteenths add up exactly, whatever the order. */
		for (size_t i = 0; i < cnt; i++) {
			util[i] = test_below(&r, 2) ? 0 : (double)test_below(&r, 17) / 16;
			total += util[i];
		}
		run = found(util, cnt);
		if (total <= 0) {
			assert_int_equal(run.begin, run.end);
			continue;
		}
		assert_int_equal(brute_force(util, cnt, &gap, &want), 1);
		assert_int_equal(run.begin, want.begin);
		assert_int_equal(run.end, want.end);
		assert_true(util[run.begin] > 0 && util[run.end - 1] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(critdur_leaves_out_the_waiting_before_a_transfer),
		cmocka_unit_test(critdur_leaves_out_a_small_part_behind_a_gap),
		cmocka_unit_test(critdur_takes_the_smallest_gap_that_suffices),
		cmocka_unit_test(critdur_keeps_exactly_four_fifths),
		cmocka_unit_test(critdur_of_steady_use_is_everything),
		cmocka_unit_test(critdur_without_activity_is_empty),
		cmocka_unit_test(critdur_refuses_values_outside_0_to_1),
		cmocka_unit_test(critdur_agrees_with_trying_every_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
