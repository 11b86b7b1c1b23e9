/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void assert_described(const struct report_trigger *trigger, const char *expected)
{
	struct str text = { 0 };

	trigger_describe(trigger, &text);
	assert_string_equal(str_borrow(&text), expected);
	str_done(&text);
}

static void a_slowdown_is_described_by_both_paces_and_its_beginning(void **state)
{
	struct report_trigger trigger = { .present = true,
					  .kind = "slowdown",
					  .baseline_iteration_ms = 9.8,
					  .current_iteration_ms = 33.8,
					  .step = 700,
					  .since_step = 650 };

	(void)state;
	assert_described(&trigger, "9.8 -> 33.8 ms since step 650 (3.4x)");
	trigger.since_step = 0;
	assert_described(&trigger, "9.8 -> 33.8 ms (3.4x)");
	trigger.current_iteration_ms = 20000;
	trigger.baseline_iteration_ms = 4000;
	assert_described(&trigger, "4.0 -> 20.0 s (5.0x)");
	trigger.baseline_iteration_ms = 18500;
	assert_described(&trigger, "18.5 -> 20.0 s (+8 %)");
	trigger.baseline_iteration_ms = 19950;
	assert_described(&trigger, "19.9 -> 20.0 s");
	trigger.baseline_iteration_ms = 0;
	assert_described(&trigger, "iterations became longer");
}

static void a_slowdown_below_a_fifth_may_be_the_machines(void **state)
{
	struct report_trigger trigger = { .present = true,
					  .kind = "slowdown",
					  .baseline_iteration_ms = 10,
					  .current_iteration_ms = 11.9 };

	(void)state;
	assert_true(trigger_is_slight(&trigger));
	trigger.current_iteration_ms = 12.1;
	assert_false(trigger_is_slight(&trigger));
	trigger.baseline_iteration_ms = 0;
	assert_false(trigger_is_slight(&trigger));
}

static void a_requested_window_of_a_slow_job_is_slow_too(void **state)
{
	struct report_trigger trigger = { .present = true, .kind = "request" };

	(void)state;
	assert_false(trigger_is_slow(&trigger));
	trigger.since_step = 40;
	assert_true(trigger_is_slow(&trigger));
	trigger = (struct report_trigger){ .present = true, .kind = "slowdown" };
	assert_true(trigger_is_slow(&trigger));
	trigger.present = false;
	assert_false(trigger_is_slow(&trigger));
}

static void a_window_at_the_best_pace_shows_nothing_of_the_slowdown(void **state)
{
	struct report_trigger trigger = { .present = true,
					  .kind = "slowdown",
					  .baseline_iteration_ms = 10,
					  .current_iteration_ms = 30 };

	(void)state;
	assert_true(trigger_is_over(&trigger, 10.5));
	assert_true(trigger_is_over(&trigger, 20));
	assert_false(trigger_is_over(&trigger, 20.1));
	assert_false(trigger_is_over(&trigger, 2)); /* a part of an iteration */
	trigger.baseline_iteration_ms = 0;
	assert_false(trigger_is_over(&trigger, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slowdown_is_described_by_both_paces_and_its_beginning),
		cmocka_unit_test(a_slowdown_below_a_fifth_may_be_the_machines),
		cmocka_unit_test(a_requested_window_of_a_slow_job_is_slow_too),
		cmocka_unit_test(a_window_at_the_best_pace_shows_nothing_of_the_slowdown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
