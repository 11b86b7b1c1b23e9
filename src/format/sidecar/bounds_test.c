/* SPDX-License-Identifier: Apache-2.0 */
#include "format/sidecar/bounds.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BEGIN 1000

/* A window that began at BEGIN, in a job that has done 10 steps. */
static struct bounds bounds;
static struct sidecar side;

static int window_open(void **state)
{
	(void)state;
	bounds = (struct bounds){ .step = 10 };
	side = (struct sidecar){ .header.start_ns = BEGIN };
	return 0;
}

static int window_done(void **state)
{
	(void)state;
	sidecar_done(&side);
	return 0;
}

static void mark(enum mark kind, uint64_t step, int64_t time_ns, struct bounds_view view)
{
	const struct ring_record record = { .kind = kind, .extra = step, .time_ns = time_ns };

	bounds_mark(&bounds, &record, &view, &side);
}

static const struct bounds_view unknown = { .learned = false };

static struct bounds_view inside(uint32_t step_cnt)
{
	return (struct bounds_view){ .learned = true, .step_cnt = step_cnt };
}

static struct bounds_view ended(int64_t bound_ns, int64_t end_ns, uint32_t step_cnt)
{
	return (struct bounds_view){ .learned = true,
				     .ended = true,
				     .bound_ns = bound_ns,
				     .end_ns = end_ns,
				     .step_cnt = step_cnt };
}

static void assert_bound(size_t i, uint64_t step, int64_t start_ns)
{
	assert_true(i < side.iterations.cnt);
	assert_int_equal(side.iterations.data[i].step, step);
	assert_int_equal(side.iterations.data[i].start_ns, start_ns);
}

static void a_loop_without_a_loader_is_divided_where_the_detector_ends_iterations(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++) {
		mark(MARK_OPTIMIZER, 9 + 2 * i, BEGIN + 100 * i - 20, inside(2));
		mark(MARK_OPTIMIZER, 10 + 2 * i, BEGIN + 100 * i,
		     ended(BEGIN + 100 * i, BEGIN + 100 * i, 2));
	}
	bounds_end(&bounds, 16, &side);
	assert_int_equal(side.iterations.cnt, 3);
	assert_bound(0, 12, BEGIN + 100);
	assert_bound(2, 16, BEGIN + 300);
}

static void a_loop_with_a_loader_is_divided_at_its_first_call(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		mark(MARK_DATALOADER, 0, BEGIN + 100 * i, inside(1));
		mark(MARK_OPTIMIZER, 11 + (uint64_t)i, BEGIN + 100 * i + 90,
		     ended(BEGIN + 100 * i, BEGIN + 100 * i + 90, 1));
	}
	bounds_end(&bounds, 13, &side);
	assert_int_equal(side.iterations.cnt, 4);
	assert_bound(0, 10, BEGIN);
	assert_bound(2, 12, BEGIN + 200);
	assert_bound(3, 13, BEGIN + 290);
}

static void before_the_detector_knows_steps_or_loader_calls_divide(void **state)
{
	(void)state;
	mark(MARK_OPTIMIZER, 11, BEGIN + 10, unknown);
	mark(MARK_OPTIMIZER, 12, BEGIN + 20, unknown);
	mark(MARK_DATALOADER, 0, BEGIN + 25, unknown);
	mark(MARK_DATALOADER, 0, BEGIN + 26, unknown);
	mark(MARK_OPTIMIZER, 13, BEGIN + 30, unknown);
	mark(MARK_DATALOADER, 0, BEGIN + 35, unknown);
	mark(MARK_ITERATION, 14, BEGIN + 40, unknown);
	bounds_end(&bounds, 0, &side);
	assert_int_equal(side.iterations.cnt, 5);
	assert_bound(0, 11, BEGIN + 10);
	assert_bound(2, 12, BEGIN + 25);
	assert_bound(3, 13, BEGIN + 35);
	assert_bound(4, 14, BEGIN + 40);
}

static void marks_before_and_after_the_window_divide_nothing(void **state)
{
	(void)state;
	mark(MARK_OPTIMIZER, 11, BEGIN - 1, ended(BEGIN - 1, BEGIN - 1, 1));
	for (int i = 2; i <= 6; i++)
		mark(MARK_OPTIMIZER, 10 + (uint64_t)i, BEGIN + 10 * i,
		     ended(BEGIN + 10 * i, BEGIN + 10 * i, 1));
	bounds_end(&bounds, 14, &side);
	assert_int_equal(side.iterations.cnt, 3);
	assert_bound(2, 14, BEGIN + 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, window_open, window_done)
		TEST(a_loop_without_a_loader_is_divided_where_the_detector_ends_iterations),
		TEST(a_loop_with_a_loader_is_divided_at_its_first_call),
		TEST(before_the_detector_knows_steps_or_loader_calls_divide),
		TEST(marks_before_and_after_the_window_divide_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
