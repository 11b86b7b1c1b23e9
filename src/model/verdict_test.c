/* SPDX-License-Identifier: Apache-2.0 */
#include "model/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void names_of_the_json_contract_and_their_numbers_stay(void **state)
{
	static const char *const names[] = {
		"healthy", "abnormal", "inconclusive", "slow",
		"failed",  "stuck",    "incomplete",   "nothing_found"
	};

	(void)state;
	assert_int_equal(VERDICT_CNT, ARRAY_SIZE(names));
	for (int i = 0; i < VERDICT_CNT; i++)
		assert_string_equal(verdict_name((enum verdict)i), names[i]);
}

static void every_verdict_has_words_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < VERDICT_CNT; i++) {
		for (int j = 0; j < i; j++)
			assert_string_not_equal(verdict_words((enum verdict)i),
						verdict_words((enum verdict)j));
	}
}

static void only_a_healthy_job_is_neither_bad_nor_open(void **state)
{
	(void)state;
	for (int i = 0; i < VERDICT_CNT; i++) {
		bool bad = verdict_is_bad((enum verdict)i), open = verdict_is_open((enum verdict)i);

		assert_int_equal(!bad && !open, i == VERDICT_HEALTHY);
		assert_false(bad && open);
	}
	assert_true(verdict_is_bad(VERDICT_SLOW));
	assert_true(verdict_is_bad(VERDICT_FAILED));
	assert_true(verdict_is_bad(VERDICT_STUCK));
	assert_true(verdict_is_open(VERDICT_INCOMPLETE));
}

/* Numbers come over the wire: one out of range must not read past the table. */
static void a_number_out_of_range_is_unknown(void **state)
{
	(void)state;
	assert_string_equal(verdict_name((enum verdict)VERDICT_CNT), "unknown");
	assert_string_equal(verdict_words((enum verdict) - 1), "UNKNOWN");
	assert_false(verdict_is_bad((enum verdict)VERDICT_CNT));
	assert_false(verdict_is_open((enum verdict) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_json_contract_and_their_numbers_stay),
		cmocka_unit_test(every_verdict_has_words_of_its_own),
		cmocka_unit_test(only_a_healthy_job_is_neither_bad_nor_open),
		cmocka_unit_test(a_number_out_of_range_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
