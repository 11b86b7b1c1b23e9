/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void small_counts_are_exact(_unused_ void **state)
{
	assert_int_equal(elements_encode(0), 1);
	for (int64_t n = 0; n < 2048; n++)
		assert_int_equal(elements_decode(elements_encode(n)), n);
}

/* Around each power of two, and between them. */
static void large_counts_are_off_by_less_than_a_thousandth(_unused_ void **state)
{
	for (int64_t power = 2048; power <= ELEMENTS_MAX; power *= 2) {
		for (int64_t n = power - 3; n <= MIN(power + power / 2 + 3, ELEMENTS_MAX);
		     n += MAX(power / 1000, 1)) {
			int64_t got = elements_decode(elements_encode(n));

			assert_true(llabs(got - n) * 2048 <= n);
		}
	}
}

static void more_elements_have_no_smaller_code(_unused_ void **state)
{
	uint16_t last = 0;

	for (int64_t n = 0; n < 1 << 20; n++) {
		uint16_t code = elements_encode(n);

		assert_true(code == last || code == last + 1);
		last = code;
	}
}

static void impossible_counts_are_unknown(_unused_ void **state)
{
	assert_int_equal(elements_encode(-1), 0);
	assert_int_equal(elements_encode(INT64_MIN), 0);
	assert_int_equal(elements_encode(ELEMENTS_MAX + 1), 0);
	assert_int_equal(elements_encode(INT64_MAX), 0);
	assert_int_equal(elements_decode(0), -1);
	assert_int_equal(elements_decode(elements_encode(ELEMENTS_MAX)), ELEMENTS_MAX);
}

/* A recorder may contain any code: it decodes to unknown or re-encodes to itself. */
static void every_code_can_be_read(_unused_ void **state)
{
	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		int64_t elements = elements_decode((uint16_t)code);

		assert_int_equal(elements_encode(elements), elements < 0 ? 0 : code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_counts_are_exact),
		cmocka_unit_test(large_counts_are_off_by_less_than_a_thousandth),
		cmocka_unit_test(more_elements_have_no_smaller_code),
		cmocka_unit_test(impossible_counts_are_unknown),
		cmocka_unit_test(every_code_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
