/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/recordername.h"

#include <setjmp.h>
#include <stdarg.h>

/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void only_names_of_recorders_have_a_rank(void **state)
{
	static const char *const others[] = {
		"",
		"rank.flight",
		"rank3.before.flight",
		"rank3.flight.tmp",
		"rank-1.flight",
		"rank1234567.flight",
		"xrank3.flight",
		"rank3/../4.flight",
		"../rank3.flight",
	};

	(void)state;
	assert_int_equal(recordername_rank("rank0.flight"), 0);
	assert_int_equal(recordername_rank("rank123456.flight"), 123456);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(recordername_rank(others[i]), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_names_of_recorders_have_a_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
