/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place/pywait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void calls_that_wait_are_known_with_and_without_addresses(_unused_ void **state)
{
	assert_true(pywait_is("<built-in function sleep>"));
	assert_true(pywait_is("<built-in method acquire of _thread.lock object>"));
	assert_true(
		pywait_is("<built-in method acquire of _thread.RLock object at 0x7f3c5a1b2d40>"));
	assert_true(pywait_is("<built-in method poll of select.epoll object at 0x7f3c5a1b2d40>"));
}

static void other_functions_do_not_wait(_unused_ void **state)
{
	assert_false(pywait_is(""));
	assert_false(pywait_is("train.py(3): sleep"));
	assert_false(pywait_is("<built-in function sleepy>"));
	assert_false(pywait_is("<built-in method mm of type object at 0x7f3c5a1b2d40>"));
	assert_false(pywait_is("<built-in function readlink>"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_wait_are_known_with_and_without_addresses),
		cmocka_unit_test(other_functions_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
