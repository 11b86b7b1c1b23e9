/* SPDX-License-Identifier: Apache-2.0 */
#include "format/shared/matmul.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void a_shape_has_its_flop(_unused_ void **state)
{
	const struct ring_record record = { .kind = FLIGHT_TIMED_SHAPE,
					    .value = (int64_t)3 << 32 | 4,
					    .extra = (uint64_t)5 << 32 | 6,
					    .detail = 14 };
	struct matmul matmul;

	assert_true(matmul_of(&record, &matmul));
	assert_true(matmul.m == 3 && matmul.n == 4 && matmul.k == 5 && matmul.matrices == 6);
	assert_true(matmul.groups == 0 && matmul.type == 14);
	assert_true(matmul.flop == 2 * 3 * 4 * 5 * 6);
}

static void complex_numbers_are_four_times_the_work(_unused_ void **state)
{
	assert_true(matmul_flop(1, 1, 1, 1, 0) == 2);
	assert_true(matmul_flop(1, 1, 1, 1, 4) == 8 && matmul_flop(1, 1, 1, 1, 5) == 8);
	assert_true(matmul_flop(1, 1, 1, 1, 6) == 8 && matmul_flop(1, 1, 1, 1, 15) == 8);
}

static void the_largest_numbers_overflow_nothing(_unused_ void **state)
{
	const struct ring_record record = {
		.kind = FLIGHT_TIMED_SHAPE, .value = -1, .extra = UINT64_MAX, .detail = UINT16_MAX
	};
	struct matmul matmul;

	assert_true(matmul_of(&record, &matmul));
	assert_true(matmul.flop > 6e38 && matmul.flop < 7e38);
	assert_string_equal(matmul_type_name(matmul.type), "other");
}

static void groups_have_work_and_no_shape(_unused_ void **state)
{
	const struct ring_record record = { .kind = FLIGHT_TIMED_GROUPS,
					    .value = 12345678901,
					    .extra = (uint64_t)8 << 32 | 20 };
	struct matmul matmul;

	assert_true(matmul_of(&record, &matmul));
	assert_true(matmul.m == 0 && matmul.groups == 8 && matmul.matrices == 20);
	assert_true(matmul.flop == 12345678901.0);
	assert_string_equal(matmul_type_name(matmul.type), "float32");
}

static void other_records_are_no_matmuls(_unused_ void **state)
{
	struct matmul matmul = { .m = 7 };

	for (int kind = 0; kind < FLIGHT_KIND_END; kind++) {
		const struct ring_record record = { .kind = (uint16_t)kind };

		if (kind != FLIGHT_TIMED_SHAPE && kind != FLIGHT_TIMED_GROUPS)
			assert_false(matmul_of(&record, &matmul));
	}
	assert_int_equal(matmul.m, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shape_has_its_flop),
		cmocka_unit_test(complex_numbers_are_four_times_the_work),
		cmocka_unit_test(the_largest_numbers_overflow_nothing),
		cmocka_unit_test(groups_have_work_and_no_shape),
		cmocka_unit_test(other_records_are_no_matmuls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
