/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/fleetend.h"

#include "base/clock.h"
#include "live/link/wire.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define S NSEC_PER_SEC
#define LINGER (60 * S)

static void note_end(struct fleetend *end, int32_t rank, int status)
{
	struct wire_state state = {
		.rank = rank, .phase = PHASE_GONE, .exit_known = 1, .exit_status = status
	};
	struct bus_message message = { .data = &state, .len = sizeof(state) };

	fleetend_take_state(end, &message);
}

static void a_host_waits_longer_after_a_failure(void **state)
{
	struct fleetend end;

	(void)state;
	fleetend_init(&end, LINGER);
	assert_false(fleetend_of_host(&end, 0, 1 * S)); /* before the first worker */
	assert_false(fleetend_of_host(&end, 2, 30 * S));
	note_end(&end, 0, 0);
	note_end(&end, 1, SIGKILL);
	assert_int_equal(fleetend_status(&end), 128 + SIGKILL);
	assert_false(fleetend_of_host(&end, 0, 100 * S));
	assert_false(fleetend_of_host(&end, 0, 159 * S));
	assert_true(fleetend_of_host(&end, 0, 160 * S));
	assert_false(fleetend_of_host(&end, 2, 161 * S)); /* started again */
	note_end(&end, 1, 0);
	assert_int_equal(fleetend_status(&end), 0);
	assert_false(fleetend_of_host(&end, 0, 200 * S));
	assert_true(fleetend_of_host(&end, 0, 200 * S + FLEETEND_WELL_NS));
	fleetend_done(&end);
}

static void a_job_to_which_no_worker_comes_is_over(void **state)
{
	struct fleetend end;

	(void)state;
	fleetend_init(&end, LINGER);
	assert_false(fleetend_of_host(&end, 0, 1 * S));
	assert_true(fleetend_of_host(&end, 0, 61 * S));
	fleetend_done(&end);
}

static void the_leader_waits_for_all_hosts_and_long_for_silent_ones(void **state)
{
	struct leader_ends none = { .hosts = 0 }, two = { .hosts = 2, .ended = 1 };
	struct leader_ends silent = { .hosts = 2, .ended = 1, .silent = 1 };
	struct leader_ends ended = { .hosts = 2, .ended = 2 };
	struct fleetend end;

	(void)state;
	fleetend_init(&end, LINGER);
	assert_false(fleetend_of_hosts(&end, &none, 1 * S));
	assert_false(fleetend_of_hosts(&end, &two, 90 * S));
	assert_false(fleetend_of_hosts(&end, &silent, 100 * S));
	assert_false(fleetend_of_hosts(&end, &silent, 300 * S));
	assert_true(fleetend_of_hosts(&end, &silent, 701 * S));
	assert_false(fleetend_of_hosts(&end, &two, 702 * S));
	assert_false(fleetend_of_hosts(&end, &ended, 703 * S));
	assert_true(fleetend_of_hosts(&end, &ended, 706 * S));
	fleetend_done(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_waits_longer_after_a_failure),
		cmocka_unit_test(a_job_to_which_no_worker_comes_is_over),
		cmocka_unit_test(the_leader_waits_for_all_hosts_and_long_for_silent_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
