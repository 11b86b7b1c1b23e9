/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/pacemarks.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct pacemarks marks;
/* Ten steps in the first ten seconds, then a hundred in ten. */
static const struct pacemarks_point points[] = { { 100, 0 }, { 110, 10 }, { 120, 110 } };

static int start(void **state)
{
	(void)state;
	memset(&marks, 0, sizeof(marks));
	return 0;
}

static void say(const char *kind, int64_t at_s)
{
	const struct store_event event = { .kind = kind,
					   .text = "why",
					   .at_ns = at_s * NSEC_PER_SEC };

	pacemarks_note_event(&marks, &event);
}

static void an_event_is_at_the_step_of_its_time(void **state)
{
	(void)state;
	say("order", 105);
	say("slow", 115);
	assert_int_equal(pacemarks_place(&marks, points, ARRAY_SIZE(points)), 2);
	assert_float_equal(marks.placed[0].step, 5.0, 1e-9);
	assert_string_equal(marks.placed[0].word, "order");
	assert_false(marks.placed[0].bad);
	assert_float_equal(marks.placed[1].step, 60.0, 1e-9);
	assert_string_equal(marks.placed[1].text, "why");
	assert_true(marks.placed[1].bad);
}

static void what_is_before_the_pace_or_says_nothing_of_it_is_left_out(void **state)
{
	(void)state;
	say("order", 99);
	say("state", 105);
	assert_int_equal(pacemarks_place(&marks, points, ARRAY_SIZE(points)), 0);
	assert_int_equal(pacemarks_place(&marks, points, 0), 0);
	say("accepted", 500); /* a job that is blocked now */
	assert_int_equal(pacemarks_place(&marks, points, ARRAY_SIZE(points)), 1);
	assert_float_equal(marks.placed[0].step, 110.0, 1e-9);
}

static void only_reports_with_findings_are_marks_and_all_are_in_order(void **state)
{
	struct store_report report = { .number = 3,
				       .reason = "rank 1",
				       .made_ns = 102 * NSEC_PER_SEC };

	(void)state;
	say("restart", 118);
	pacemarks_note_report(&marks, &report, 0);
	assert_int_equal(marks.cnt, 1);
	pacemarks_note_report(&marks, &report, 1);
	assert_int_equal(pacemarks_place(&marks, points, ARRAY_SIZE(points)), 2);
	assert_string_equal(marks.placed[0].word, "finding");
	assert_string_equal(marks.placed[0].text, "report 3: rank 1");
	assert_string_equal(marks.placed[1].word, "restart");
}

static void of_too_many_the_rest_is_counted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PACEMARKS_MAX + 7; i++)
		say("order", 105);
	assert_int_equal(marks.cnt, PACEMARKS_MAX);
	assert_int_equal(marks.left_out, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_event_is_at_the_step_of_its_time, start),
		cmocka_unit_test_setup(what_is_before_the_pace_or_says_nothing_of_it_is_left_out,
				       start),
		cmocka_unit_test_setup(only_reports_with_findings_are_marks_and_all_are_in_order,
				       start),
		cmocka_unit_test_setup(of_too_many_the_rest_is_counted, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
