/* SPDX-License-Identifier: Apache-2.0 */
#include "live/pace/pacelog.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct pacelog series;

static int set_up(void **state)
{
	(void)state;
	series = (struct pacelog){ 0 };
	return 0;
}

static void each_new_step_is_a_point_while_there_is_room(void **state)
{
	(void)state;
	pacelog_add(&series, 1, 10);
	pacelog_add(&series, 1, 99);
	pacelog_add(&series, 2, 0);
	pacelog_add(&series, 4, 30);
	assert_int_equal(series.cnt, 2);
	assert_int_equal(series.points[0].max_ns, 10);
	assert_int_equal(series.points[1].step, 4);
}

/* The slowest, the fastest and the sum of all times survive any number of joins. */
static void a_long_run_stays_bounded_and_loses_no_extreme(void **state)
{
	int64_t least = INT64_MAX, most = 0;
	uint64_t cnt = 0, before = 0;
	double sum = 0;

	(void)state;
	for (uint64_t step = 1; step <= 10000; step++)
		pacelog_add(&series, step, step == 7777 ? 900 : step == 3333 ? 2 : 10);
	assert_in_range(series.cnt, PACELOG_MAX / 4, PACELOG_MAX);
	for (size_t i = 0; i < series.cnt; i++) {
		assert_true(series.points[i].step > before);
		before = series.points[i].step;
		least = MIN(least, series.points[i].min_ns);
		most = MAX(most, series.points[i].max_ns);
		sum += series.points[i].sum_ns;
		cnt += series.points[i].cnt;
	}
	assert_int_equal(cnt, 10000);
	assert_int_equal(least, 2);
	assert_int_equal(most, 900);
	assert_true(sum == 9998 * 10 + 902);
}

static void a_restarted_job_begins_anew(void **state)
{
	(void)state;
	for (uint64_t step = 1; step <= 1000; step++)
		pacelog_add(&series, step, 10);
	pacelog_add(&series, 3, 20);
	pacelog_add(&series, 4, 20);
	assert_int_equal(series.cnt, 2);
	assert_int_equal(series.points[0].step, 3);
}

static void a_report_gets_milliseconds(void **state)
{
	struct report report = { 0 };

	(void)state;
	arena_init(&report.arena);
	pacelog_add(&series, 5, 20 * NSEC_PER_MSEC);
	pacelog_add(&series, 6, 40 * NSEC_PER_MSEC);
	pacelog_fill(&series, 10 * NSEC_PER_MSEC, &report);
	assert_int_equal(report.pace.point_cnt, 2);
	assert_true(report.pace.points[1].mean_ms == 40 && report.pace.best_ms == 10);
	arena_done(&report.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_new_step_is_a_point_while_there_is_room, set_up),
		cmocka_unit_test_setup(a_long_run_stays_bounded_and_loses_no_extreme, set_up),
		cmocka_unit_test_setup(a_restarted_job_begins_anew, set_up),
		cmocka_unit_test_setup(a_report_gets_milliseconds, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
