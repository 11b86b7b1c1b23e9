/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/otherhosts.h"

#include <setjmp.h>
#include <stdarg.h>

/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct wire_state state_of(uint32_t worker, uint64_t step, enum wire_phase phase)
{
	return (struct wire_state){ .worker = worker, .step = step, .phase = phase };
}

static void only_living_workers_of_other_hosts_are_kept(void **state)
{
	const struct wire_state own = state_of(7, 1, PHASE_STEADY);
	struct wire_state other = state_of(WIRE_OWN_WORKERS + 7, 1, PHASE_STEADY);
	struct otherhosts others = { 0 };

	(void)state;
	otherhosts_take(&others, &own);
	assert_int_equal(others.states.cnt, 0);
	otherhosts_take(&others, &other);
	other.step = 2;
	otherhosts_take(&others, &other);
	assert_int_equal(others.states.cnt, 1);
	assert_int_equal(others.states.data[0].step, 2);
	other.phase = PHASE_GONE;
	otherhosts_take(&others, &other);
	otherhosts_take(&others, &other);
	assert_int_equal(others.states.cnt, 0);
	otherhosts_done(&others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_living_workers_of_other_hosts_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
