/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/perfdenial.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define ROOT "Name:\tpython\nCapEff:\t000001ffffffffff\n"
#define USER "Name:\tpython\nCapEff:\t0000000000000000\n"
#define FILTER "Seccomp:\t2\nSeccomp_filters:\t1\n"

static void a_filter_is_sure_if_nothing_else_can_refuse(void **state)
{
	(void)state;
	assert_true(perfdenial_is_filter(ROOT FILTER, EPERM));
	assert_true(perfdenial_is_filter(ROOT FILTER, EACCES));
	assert_true(perfdenial_is_filter(USER FILTER, ENOSYS));
}

static void the_rules_of_the_kernel_are_no_filter(void **state)
{
	(void)state;
	assert_false(perfdenial_is_filter(USER FILTER, EACCES)); /* either can be the reason */
	assert_false(perfdenial_is_filter(ROOT "Seccomp:\t0\n", EPERM));
	assert_false(perfdenial_is_filter(USER "Seccomp:\t0\n", ENOSYS)); /* a kernel without it */
	assert_false(perfdenial_is_filter(ROOT FILTER, ENODEV));
	assert_false(perfdenial_is_filter("", EPERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_is_sure_if_nothing_else_can_refuse),
		cmocka_unit_test(the_rules_of_the_kernel_are_no_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
