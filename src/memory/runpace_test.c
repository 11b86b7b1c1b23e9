/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/runpace.h"

#include "memory/samecommand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void add(struct runpace *pace, int64_t at_s, uint64_t step, int64_t mean_ns, uint64_t cnt)
{
	assert_int_equal(runpace_add(pace, &(struct runpace_row){ .at_s = at_s,
								  .sum_ns = mean_ns * (int64_t)cnt,
								  .step = step,
								  .cnt = cnt }),
			 0);
}

static struct runpace_sum sum(const struct runpace *pace)
{
	struct runpace_sum ret;

	assert_int_equal(runpace_sum(pace, &ret), 0);
	return ret;
}

static void the_median_is_weighted_by_iterations(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };
	struct runpace_sum got;

	(void)state;
	for (int i = 0; i < 4; i++)
		add(&pace, i, (uint64_t)i, 100, 1);
	add(&pace, 4, 4, 20, 5);
	got = sum(&pace);
	assert_true(got.known);
	assert_int_equal(got.median_ns, 20);
	assert_int_equal(got.low_ns, 20);
	assert_int_equal(got.high_ns, 100);
	runpace_done(&pace);
}

static void few_rows_are_no_pace(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };

	(void)state;
	for (unsigned i = 0; i + 1 < RUNPACE_ROWS_MIN; i++)
		add(&pace, i, i, 100, 1);
	add(&pace, 9, 9, 100, 0); /* no iteration */
	assert_false(sum(&pace).known);
	runpace_done(&pace);
}

static void a_slow_stretch_is_left_out_from_its_first_step_on(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };
	struct runpace_sum got;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		add(&pace, 1000 + i, i * 10, i >= 20 && i < 90 ? 300 : 100, 1);
	runpace_take_event(&pace, "slow", "0.1 -> 0.3 ms since step 200", 1023);
	runpace_take_event(&pace, "state", "slow since step 0", 1024);
	runpace_take_event(&pace, "slow-over", "0.1 ms at step 890", 1090);
	got = sum(&pace);
	assert_int_equal(got.high_ns, 100);
	assert_int_equal(got.row_cnt, 20 + 9);
	runpace_done(&pace);
}

static void a_slow_stretch_without_an_end_lasts(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		add(&pace, 1000 + i, i * 10, i >= 20 ? 300 : 100, 1);
	runpace_take_event(&pace, "slow", "0.1 -> 0.3 ms since step 200", 1023);
	assert_int_equal(sum(&pace).row_cnt, 20);
	runpace_done(&pace);
}

static void more_slow_stretches_than_are_kept_leave_the_rest_out(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		add(&pace, i, i, 100, 1);
	for (unsigned i = 0; i < RUNPACE_SLOW_MAX + 5; i++) {
		runpace_begin_slow(&pace, i * 10);
		runpace_end_slow(&pace, i * 10);
	}
	assert_true(sum(&pace).row_cnt < RUNPACE_SLOW_MAX * 10);
	runpace_done(&pace);
}

static void a_long_run_needs_bounded_memory(void **state)
{
	struct runpace pace = { .slow_cnt = 0 };
	struct runpace_sum got;

	(void)state;
	for (unsigned i = 0; i < 5 * RUNPACE_ROWS_MAX; i++)
		add(&pace, i, i, i % 2 == 0 ? 100 : 110, 1);
	assert_true(pace.rows.cnt <= RUNPACE_ROWS_MAX);
	got = sum(&pace);
	assert_true(got.median_ns >= 100 && got.median_ns <= 110);
	runpace_done(&pace);
}

static void commands_are_alike_but_for_ports_and_places_of_logs(void **state)
{
	(void)state;
	assert_true(samecommand("torchrun --master-port 1 a.py", "torchrun --master_port=22 a.py"));
	assert_true(samecommand("a.py  --x", "a.py --x"));
	assert_true(samecommand("a.py --log-dir /a/1", "a.py --log-dir /a/2"));
	assert_false(samecommand("a.py --batch-size 32", "a.py --batch-size 64"));
	assert_false(samecommand("a.py", "a.py --x"));
	assert_false(samecommand("a.py --log-dirs 1", "a.py --log-dirs 2"));
	assert_false(samecommand("a.py", NULL));
	assert_false(samecommand(NULL, NULL));
	assert_true(samecommand("", ""));
	assert_true(samecommand("a --rdzv-id", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_is_weighted_by_iterations),
		cmocka_unit_test(few_rows_are_no_pace),
		cmocka_unit_test(a_slow_stretch_is_left_out_from_its_first_step_on),
		cmocka_unit_test(a_slow_stretch_without_an_end_lasts),
		cmocka_unit_test(more_slow_stretches_than_are_kept_leave_the_rest_out),
		cmocka_unit_test(a_long_run_needs_bounded_memory),
		cmocka_unit_test(commands_are_alike_but_for_ports_and_places_of_logs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
