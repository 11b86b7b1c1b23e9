/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in 16 bits, and names that are sent once. */
#include "center/wire/fpnames.h"

#include "model/code16.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void codes_keep_eleven_bits_and_the_order(void **state)
{
	uint64_t before = 0;

	(void)state;
	for (uint32_t code = 0; code <= CODE16_TOP; code++) {
		uint64_t count = code16_count((uint16_t)code);

		assert_int_equal(code16_of_count(count), code);
		assert_true(code == 0 || count > before);
		before = count;
	}
	for (uint64_t i = 1; i < 100000; i++) {
		uint64_t count = i * 0x9e3779b97f4a7c15ULL >> 2 >> i % 62;
		double off = (double)code16_count(code16_of_count(count)) - (double)count;

		assert_true(fabs(off) <= (double)count / 2048);
	}
	assert_int_equal(code16_of_count(UINT64_MAX), CODE16_TOP);
	assert_int_equal(code16_of_frac(1), CODE16_ONE);
	assert_int_equal(code16_of_frac(0), 0);
	assert_int_equal(code16_of_frac((double)NAN), CODE16_ABSENT);
	assert_int_equal(code16_of_frac(-1), CODE16_ABSENT);
	assert_true(isnan(code16_frac(CODE16_ABSENT)));
	assert_true(code16_frac(code16_of_frac((double)INFINITY)) >= 0x1p31);
}

static void a_name_has_a_place_before_it_is_known(void **state)
{
	struct fpnames names = { 0 };
	struct funckey key = { 1, 2 };
	struct fpname_id root = fpname_id_of(fpname_none, key, KIND_PYTHON, "main", 4);
	struct fpname_id leaf = fpname_id_of(root, key, KIND_PYTHON, "leaf", 4);
	uint32_t at_leaf, at_root, found;

	(void)state;
	assert_int_equal(fpnames_place(&names, leaf, &at_leaf), 0);
	assert_int_equal(names.unknown_cnt, 1);
	assert_null(names.list.data[at_leaf].text);
	assert_int_equal(fpnames_learn(&names, FRAME_NONE, key, KIND_PYTHON, "main", 4, &at_root),
			 0);
	assert_int_equal(fpnames_learn(&names, at_root, key, KIND_PYTHON, "leaf", 4, &found), 0);
	assert_int_equal(found, at_leaf);
	assert_int_equal(names.unknown_cnt, 0);
	assert_int_equal(names.list.data[at_leaf].parent, at_root);
	assert_string_equal(names.list.data[at_leaf].text, "leaf");
	assert_int_equal(fpnames_find(&names, leaf), at_leaf);
	assert_int_equal(fpnames_place(&names, fpname_none, &found), 0);
	assert_int_equal(found, FRAME_NONE);
	fpnames_done(&names);
}

static void whatever_makes_a_frame_makes_its_id(void **state)
{
	struct funckey key = { 1, 2 }, other = { 1, 3 };
	struct fpname_id id = fpname_id_of(fpname_none, key, KIND_PYTHON, "f", 1);

	(void)state;
	assert_false(fpname_id_equal(id, fpname_id_of(id, key, KIND_PYTHON, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, other, KIND_PYTHON, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, key, KIND_GC, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, key, KIND_PYTHON, "g", 1)));
}

static void a_dictionary_of_thousands_finds_each(void **state)
{
	struct fpnames names = { 0 };
	uint32_t place;

	(void)state;
	for (uint64_t i = 1; i < 5000; i++) {
		assert_int_equal(fpnames_place(&names, (struct fpname_id){ i, i % 7 }, &place), 0);
		assert_int_equal(place, i - 1);
	}
	for (uint64_t i = 1; i < 5000; i++)
		assert_int_equal(fpnames_find(&names, (struct fpname_id){ i, i % 7 }), i - 1);
	assert_int_equal(fpnames_find(&names, (struct fpname_id){ 1, 3 }), FRAME_NONE);
	fpnames_done(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_keep_eleven_bits_and_the_order),
		cmocka_unit_test(a_name_has_a_place_before_it_is_known),
		cmocka_unit_test(whatever_makes_a_frame_makes_its_id),
		cmocka_unit_test(a_dictionary_of_thousands_finds_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
