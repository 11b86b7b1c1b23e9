/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/reference.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct {
	struct reference reference;
	struct wire_state states[2];
} f;

static int begin(_unused_ void **state)
{
	for (int i = 0; i < 2; i++) {
		f.states[i] = test_worker(i, 500, 50 * NSEC_PER_MSEC);
		f.states[i].learned_cnt = 1;
	}
	f.reference = (struct reference){ 0 };
	reference_begin(&f.reference, f.states, 2);
	assert_int_equal(reference_add(&f.reference, "1/rank0.ptfp"), 0);
	assert_int_equal(reference_add(&f.reference, "1/rank1.ptfp"), 0);
	return 0;
}

static int end(_unused_ void **state)
{
	reference_done(&f.reference);
	return 0;
}

static void a_slowdown_after_the_check_up_is_compared_with_it(_unused_ void **state)
{
	const char *why;

	assert_true(reference_is_usable(&f.reference, 600, &why));
	assert_null(why);
	assert_true(reference_is_usable(&f.reference, 0, &why)); /* its beginning is unknown */
	assert_int_equal(f.reference.files.cnt, 2);
	assert_string_equal(f.reference.files.data[1].path, "1/rank1.ptfp");
}

static void a_slowdown_that_began_in_the_check_up_is_not(_unused_ void **state)
{
	const char *why;

	assert_false(reference_is_usable(&f.reference, 400, &why));
	assert_non_null(strstr(why, "before its end"));
	assert_false(reference_is_usable(&f.reference, 501,
					 &why)); /* the first step is not exactly known */
}

static void another_iteration_has_no_past(_unused_ void **state)
{
	const char *why;

	reference_update(&f.reference, f.states, 2);
	assert_true(reference_is_usable(&f.reference, 600, &why));
	f.states[1].learned_cnt = 2;
	reference_update(&f.reference, f.states, 2);
	assert_false(reference_is_usable(&f.reference, 600, &why));
	assert_non_null(strstr(why, "iteration has changed"));
	assert_int_equal(f.reference.files.cnt, 0);
}

static void a_new_check_up_replaces_the_past(_unused_ void **state)
{
	const char *why;

	f.states[0].step = 900;
	f.reference.accused = true;
	reference_begin(&f.reference, f.states, 2);
	assert_int_equal(reference_add(&f.reference, "2/rank0.ptfp"), 0);
	assert_false(f.reference.accused);
	assert_int_equal(f.reference.files.cnt, 1);
	assert_false(reference_is_usable(&f.reference, 600, &why));
	assert_true(reference_is_usable(&f.reference, 1000, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_slowdown_after_the_check_up_is_compared_with_it,
						begin, end),
		cmocka_unit_test_setup_teardown(a_slowdown_that_began_in_the_check_up_is_not, begin,
						end),
		cmocka_unit_test_setup_teardown(another_iteration_has_no_past, begin, end),
		cmocka_unit_test_setup_teardown(a_new_check_up_replaces_the_past, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
