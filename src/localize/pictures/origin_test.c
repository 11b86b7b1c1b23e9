/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/pictures/origin.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BEGIN_NS (INT64_C(1700000000) * NSEC_PER_SEC)

static struct fp_iteration steps[][2] = { { { .number = 7 }, { .number = 8 } },
					  { { .number = -1 }, { .number = 9 } } };
static struct fingerprint fps[4];
static const struct fingerprint *const list[] = { &fps[0], &fps[1], &fps[2], &fps[3] };

/* Three hosts; the clock of the last counts from the start of the machine. */
static int set_up(void **state)
{
	static const char *const hosts[] = { "b", "a", "b", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fps); i++)
		fps[i] = (struct fingerprint){ .host = hosts[i],
					       .window_start_wall_ns =
						       BEGIN_NS + (int64_t)i * NSEC_PER_SEC,
					       .window_ns = 4 * NSEC_PER_SEC,
					       .iterations = steps[i % 2],
					       .iteration_cnt = 2 };
	fps[3].window_start_wall_ns = 12345;
	return 0;
}

static void hosts_times_and_steps_come_from_the_workers(void **state)
{
	struct report report = { 0 };

	(void)state;
	arena_init(&report.arena);
	assert_int_equal(origin_fill(list, 4, &report), 0);
	assert_int_equal(report.origin.host_cnt, 2);
	assert_string_equal(report.origin.hosts[0], "b");
	assert_string_equal(report.origin.hosts[1], "a");
	assert_int_equal(report.origin.begin_ns, BEGIN_NS + NSEC_PER_SEC);
	assert_int_equal(report.origin.end_ns, BEGIN_NS + 5 * NSEC_PER_SEC);
	assert_true(report.origin.steps_known);
	assert_int_equal(report.origin.first_step, 7);
	assert_int_equal(report.origin.last_step, 9);
	arena_done(&report.arena);
}

static void what_no_worker_knows_stays_unknown(void **state)
{
	struct report report = { 0 };
	const struct fingerprint *last = &fps[3];

	(void)state;
	fps[3].iteration_cnt = 0;
	arena_init(&report.arena);
	assert_int_equal(origin_fill(&last, 1, &report), 0);
	assert_int_equal(report.origin.host_cnt, 0);
	assert_int_equal(report.origin.begin_ns, 0);
	assert_false(report.origin.steps_known);
	arena_done(&report.arena);
}

static void an_allocation_failure_is_returned(void **state)
{
	int error = -ENOMEM;

	(void)state;
	for (long n = 0; error != 0; n++) {
		struct report report = { 0 };

		arena_init(&report.arena);
		allocations_left = n;
		error = origin_fill(list, 4, &report);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
		arena_done(&report.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(hosts_times_and_steps_come_from_the_workers, set_up),
		cmocka_unit_test_setup(what_no_worker_knows_stays_unknown, set_up),
		cmocka_unit_test_setup(an_allocation_failure_is_returned, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
