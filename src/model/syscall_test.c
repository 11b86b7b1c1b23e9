/* SPDX-License-Identifier: Apache-2.0 */
#include "model/syscall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void calls_that_wait_have_their_names(void **state)
{
	(void)state;
	assert_string_equal(syscall_name(SYS_read), "read");
	assert_string_equal(syscall_name(SYS_futex), "futex");
	assert_string_equal(syscall_name(SYS_recvmsg), "recvmsg");
	assert_string_equal(syscall_name(SYS_clock_nanosleep), "clock_nanosleep");
}

static void unknown_numbers_have_no_name(void **state)
{
	(void)state;
	assert_null(syscall_name(-1));
	assert_null(syscall_name(100000));
	assert_null(syscall_name(INT64_MAX));
	assert_null(syscall_name(((int64_t)1 << 32) + SYS_read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_wait_have_their_names),
		cmocka_unit_test(unknown_numbers_have_no_name),
	};

	return cmocka_run_group_tests_name("syscall", tests, NULL, NULL);
}
