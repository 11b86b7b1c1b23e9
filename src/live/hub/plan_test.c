/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/plan.h"

#include "live/hub/test_states.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

static void all_workers_get_a_step_that_none_has_reached(void **state)
{
	const struct wire_state states[] = { test_worker(0, 100, 10 * MS),
					     test_worker(1, 103, 11 * MS) };
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16 };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_true(plan.start_step >= 103 + PLAN_MARGIN_NS / (10 * MS));
	assert_true(plan.start_step <= 103 + PLAN_MARGIN_NS / (10 * MS) + 2);
	assert_int_equal(plan.steps, 16);
}

static void long_iterations_fill_the_window_but_at_least_five(void **state)
{
	const struct wire_state slow = test_worker(0, 10, 2 * NSEC_PER_SEC);
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16 },
				 brief = { 1 * NSEC_PER_SEC, 16 };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(&slow, 1, &limits, &plan), 0);
	assert_int_equal(plan.steps, 10);
	assert_int_equal(plan.start_step, 10 + PLAN_MARGIN_STEPS);
	assert_int_equal(plan_order(&slow, 1, &brief, &plan), 0);
	assert_int_equal(plan.steps, PLAN_STEPS_MIN);
}

/* States of another host are a second old: 100 iterations of 10 ms. */
static void workers_have_gone_on_since_their_states_were_made(void **state)
{
	struct wire_state states[] = { test_worker(0, 100, 10 * MS), test_worker(1, 180, 10 * MS) };
	struct plan_limits limits = { 20 * NSEC_PER_SEC, 16, .now_ns = TEST_NOW_NS };
	struct order_plan plan;

	(void)state;
	states[0].last_ns = TEST_NOW_NS - NSEC_PER_SEC;
	states[1].last_ns = TEST_NOW_NS - 100 * MS;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_int_equal(plan.start_step, 200 + PLAN_MARGIN_NS / (10 * MS) + 1);
	limits.late = 1;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_int_equal(plan.start_step, 200 + 2 * PLAN_MARGIN_NS / (10 * MS) + 1);
}

static void workers_that_do_not_wait_for_one_another_are_apart(void **state)
{
	struct wire_state states[] = { test_worker(0, 3100, 7 * MS),
				       test_worker(1, 2800, 25 * MS) };
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16, .now_ns = TEST_NOW_NS };
	struct order_plan plan;

	(void)state;
	states[0].last_ns = states[1].last_ns = TEST_NOW_NS;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_true(plan.apart);
	states[1].step = 3100 - 100; /* 2.5 s: it will be there soon */
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_false(plan.apart);
	states[0].step_ns = states[1].step_ns = NSEC_PER_SEC;
	states[1].step = 3100 - 10; /* 10 s, but a pipeline or local steps may do so */
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_false(plan.apart);
	states[1].step_ns = 0; /* its pace is not known */
	states[1].step = 0;
	assert_int_equal(plan_order(states, 2, &limits, &plan), 0);
	assert_false(plan.apart);
}

static void a_blocked_worker_is_not_taken_to_have_gone_on_for_long(void **state)
{
	const struct wire_state blocked = test_worker(0, 100, 10 * MS);
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16, .now_ns = TEST_NOW_NS };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(&blocked, 1, &limits, &plan), 0);
	assert_int_equal(plan.start_step, 100 + (PLAN_AGE_MAX_NS + PLAN_MARGIN_NS) / (10 * MS) + 1);
}

/* A few iterations of a millisecond have too few samples of stacks. */
static void short_iterations_are_as_many_as_take_long_enough(void **state)
{
	const struct wire_state quick = test_worker(0, 10, 2 * MS);
	const struct plan_limits limits = { 20 * NSEC_PER_SEC, 16 }, brief = { 40 * MS, 16 };
	struct order_plan plan;

	(void)state;
	assert_int_equal(plan_order(&quick, 1, &limits, &plan), 0);
	assert_int_equal(plan.steps, PLAN_LEAST_NS / (2 * MS));
	assert_int_equal(plan_order(&quick, 1, &brief, &plan), 0);
	assert_int_equal(plan.steps, 20);
}

static void two_optimizers_make_steps_of_two_marks(void **state)
{
	struct wire_state gan = test_worker(0, 101, 10 * MS);
	const struct plan_limits limits = { 200 * MS, 100 };
	struct order_plan plan;

	(void)state;
	gan.stride = 2;
	assert_int_equal(plan_order(&gan, 1, &limits, &plan), 0);
	assert_int_equal(plan.stride, 2);
	assert_int_equal(plan.start_step % 2, 0);
	assert_int_equal(plan.steps, 10);
}

static void without_a_known_pace_there_is_no_plan(void **state)
{
	struct wire_state states[] = { test_worker(0, 0, 0), test_worker(1, 7, 10 * MS) };
	const struct plan_limits limits = { 200 * MS, 100 };
	struct order_plan plan;

	(void)state;
	states[1].phase = PHASE_GONE;
	assert_int_equal(plan_order(states, 2, &limits, &plan), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_have_gone_on_since_their_states_were_made),
		cmocka_unit_test(workers_that_do_not_wait_for_one_another_are_apart),
		cmocka_unit_test(a_blocked_worker_is_not_taken_to_have_gone_on_for_long),
		cmocka_unit_test(all_workers_get_a_step_that_none_has_reached),
		cmocka_unit_test(long_iterations_fill_the_window_but_at_least_five),
		cmocka_unit_test(short_iterations_are_as_many_as_take_long_enough),
		cmocka_unit_test(two_optimizers_make_steps_of_two_marks),
		cmocka_unit_test(without_a_known_pace_there_is_no_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
