/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a window went: numbers, and words for them. */
#include "report/breakdown.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Two iterations of 100 ms; rank 2 waits longer in collectives and computes less. */
static const double lengths[] = { 90, 110 };
static const double cut[] = { 130 };
static const struct report_worker workers[] = {
	{ 0, "", "", 200, lengths, 2, { [CLASS_COMM] = 0.2, [CLASS_COMPUTE] = 0.8 }, 0.1 },
	{ 1, "", "", 200, lengths, 2, { [CLASS_COMM] = 0.3, [CLASS_COMPUTE] = 0.7 }, NAN },
	{ 2, "", "", 130, cut, 1, { [CLASS_COMM] = 0.6, [CLASS_COMPUTE] = 0.4 }, 0.3 },
};
static const struct report report = { .iteration_ms = 100, .workers = workers, .worker_cnt = 3 };

static void assert_text(struct str *text, const char *expected)
{
	assert_int_equal(str_error(text), 0);
	assert_string_equal(str_borrow(text), expected);
	str_done(text);
}

static void classes_are_medians_over_the_workers(void **state)
{
	struct breakdown b;
	struct str text = { 0 };

	(void)state;
	assert_int_equal(breakdown_init(&b, &report), 0);
	/* Per iteration 20, 30 and 78 ms. */
	assert_float_equal(b.classes[CLASS_COMM].ms, 30, 1e-9);
	assert_float_equal(b.classes[CLASS_COMM].pct, 30, 1e-9);
	assert_float_equal(b.classes[CLASS_COMPUTE].pct, 70, 1e-9);
	assert_float_equal(b.classes[CLASS_HOST].most_pct, 0, 0);
	/* 10 and 39 ms; of rank 1 it is not known. */
	assert_float_equal(b.hidden_ms, 24.5, 1e-9);
	breakdown_phrase_class(&text, &b, &report, CLASS_COMM);
	assert_text(&text,
		    "communication that no other work hides; 24.5 ms more behind other work; "
		    "60 % on rank 2");
	breakdown_done(&b);
}

static void an_iteration_is_the_median_of_those_who_have_it(void **state)
{
	struct breakdown b;
	struct str text = { 0 };

	(void)state;
	assert_int_equal(breakdown_init(&b, &report), 0);
	assert_int_equal(b.iteration_cnt, 2);
	breakdown_phrase_iterations(&text, &b);
	assert_text(&text, "90.0 ms, 110 ms");
	breakdown_done(&b);
}

static void of_many_iterations_the_extremes_are_said(void **state)
{
	const double many[] = { NAN, 10, 10, 10, 10, 10, 9, 10, 10, 30, 10, 10 };
	const struct report_worker one = { .window_ms = 139,
					   .iteration_ms = many,
					   .iteration_cnt = ARRAY_SIZE(many) };
	const struct report of_one = { .iteration_ms = 10, .workers = &one, .worker_cnt = 1 };
	struct breakdown b;
	struct str text = { 0 };

	(void)state;
	assert_int_equal(breakdown_init(&b, &of_one), 0);
	breakdown_phrase_iterations(&text, &b);
	assert_text(&text, "12, from 9.00 ms (number 7) to 30.0 ms (number 10)");
	breakdown_done(&b);
}

static void without_workers_there_is_nothing(void **state)
{
	const struct report none = { 0 };
	struct breakdown b;

	(void)state;
	assert_int_equal(breakdown_init(&b, &none), 0);
	assert_int_equal(b.iteration_cnt, 0);
	assert_float_equal(b.classes[CLASS_HOST].ms, 0, 0);
	breakdown_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_medians_over_the_workers),
		cmocka_unit_test(an_iteration_is_the_median_of_those_who_have_it),
		cmocka_unit_test(of_many_iterations_the_extremes_are_said),
		cmocka_unit_test(without_workers_there_is_nothing),
	};

	return cmocka_run_group_tests_name("breakdown", tests, NULL, NULL);
}
