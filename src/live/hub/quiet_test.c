/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/quiet.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

static void a_quiet_report_counts_the_workers_with_a_disabled_hook(void **state)
{
	struct wire_state workers[2] = { test_worker(0, 200, 10 * MS),
					 test_worker(1, 90, 10 * MS) };
	struct quiet_facts facts = { .states = workers, .cnt = 2 };
	struct report report;

	(void)state;
	workers[1].silent = 1;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_int_equal(report.workers_analyzed, 1);
	assert_non_null(strstr(report.reason, "off in 1 of 2 workers"));
	arena_done(&report.arena);
	workers[0].silent = 1;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
}

static void a_quiet_job_is_healthy_and_a_short_one_inconclusive(void **state)
{
	struct wire_state worker = test_worker(0, 200, 10 * MS);
	struct quiet_facts facts = { .states = &worker, .cnt = 1 };
	struct report report;

	(void)state;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_string_equal(report.reason, "200 iterations watched, no slowdown");
	arena_done(&report.arena);
	worker.iterations = QUIET_ITERATIONS_MIN - 1;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
	worker.iterations = 1;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_non_null(strstr(report.reason, "only 1 iteration was seen, 30 are needed"));
	arena_done(&report.arena);
	facts.cnt = 0;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "import perftracker"));
	assert_non_null(strstr(report.reason, "started by fork"));
	arena_done(&report.arena);
}

static void a_job_that_failed_is_not_called_healthy(void **state)
{
	struct wire_state worker = test_worker(2, 200, 10 * MS);
	struct quiet_facts facts = {
		.states = &worker, .cnt = 1, .exit_status = 1, .first_gone = &worker
	};
	struct report report;

	(void)state;
	worker.pid = 77;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "status 1, and rank 2 (pid 77)"));
	arena_done(&report.arena);
	facts.exit_status = 0;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	arena_done(&report.arena);
}

static void a_job_that_hung_is_not_called_healthy(void **state)
{
	struct wire_state worker = test_worker(0, 200, 10 * MS);
	struct quiet_facts facts = { .states = &worker, .cnt = 1, .hangs = 1 };
	struct report report;

	(void)state;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "1 time no iteration ended"));
	assert_non_null(strstr(report.reason, "perftracker timeline"));
	assert_null(strstr(report.reason, "no slowdown"));
	arena_done(&report.arena);
	facts.exit_status = 1;
	facts.first_gone = &worker;
	assert_int_equal(quiet_report(&facts, &report), 0);
	assert_non_null(strstr(report.reason, "then none for a while; but the job ended"));
	arena_done(&report.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_report_counts_the_workers_with_a_disabled_hook),
		cmocka_unit_test(a_quiet_job_is_healthy_and_a_short_one_inconclusive),
		cmocka_unit_test(a_job_that_failed_is_not_called_healthy),
		cmocka_unit_test(a_job_that_hung_is_not_called_healthy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
