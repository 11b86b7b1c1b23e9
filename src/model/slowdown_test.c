/* SPDX-License-Identifier: Apache-2.0 */
#include "model/slowdown.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* From 24.5 to 45.5 ms, with findings that gain 1 ms and gain_ms. */
static double unexplained(double window_ms, double gain_ms, double baseline_ms, int64_t since_step)
{
	struct finding findings[] = { { .gain_ms_per_iteration = gain_ms },
				      { .gain_ms_per_iteration = 1 } };
	const struct report report = {
		.trigger = { .present = true,
			     .kind = since_step > 0 ? "slowdown" : "checkup",
			     .baseline_iteration_ms = baseline_ms,
			     .current_iteration_ms = 45.5,
			     .since_step = since_step },
		.iteration_ms = window_ms,
		.findings = findings,
		.finding_cnt = 2,
	};

	return slowdown_unexplained_ms(&report);
}

static void small_findings_do_not_explain_a_large_slowdown(void **state)
{
	(void)state;
	assert_float_equal(unexplained(48, 0.5, 24.5, 976), 21, 1e-9);
	assert_float_equal(unexplained(40.5, 0.5, 24.5, 976), 16, 1e-9);
	assert_float_equal(unexplained(48, 5.5, 24.5, 976), 21, 1e-9);
	assert_float_equal(unexplained(48, 6.5, 24.5, 976), 0, 0);
}

static void without_a_slowdown_there_is_nothing_to_explain(void **state)
{
	(void)state;
	assert_float_equal(unexplained(30, 0.5, 24.5, 976), 0, 0); /* it is over */
	assert_float_equal(unexplained(48, 0.5, 0, 976), 0, 0);
	assert_float_equal(unexplained(48, 0.5, NAN, 976), 0, 0);
	assert_float_equal(unexplained(48, 0.5, 24.5, 0), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_findings_do_not_explain_a_large_slowdown),
		cmocka_unit_test(without_a_slowdown_there_is_nothing_to_explain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
