/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flame/flameforms.h"

#include "base/test_alloc.h"
#include "report/flame/flamepicture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS 1e6

static struct flametree tree;
static const int ranks[] = { 4, 2, 9 }; /* by member */
static const struct flameforms forms = { .tree = &tree,
					 .what = "time",
					 .subject = "3 ranks",
					 .ranks = ranks,
					 .rank_cnt = ARRAY_SIZE(ranks) };

static void add(uint32_t member, const char *leaf, double ms)
{
	uint32_t node = flametree_child(&tree, FLAMETREE_ROOT, flametree_label(&tree, "main"),
					FLAMETREE_OTHER, member);

	node = flametree_child(&tree, node, flametree_label(&tree, leaf), FLAMETREE_PYTHON, member);
	assert_int_not_equal(node, FLAMETREE_NONE);
	flametree_weigh(&tree, node, ms * MS);
	flametree_end_member(&tree, member);
}

static int make_tree(void **state)
{
	(void)state;
	assert_int_equal(flametree_init(&tree), 0);
	add(0, "a;<script>", 10);
	add(1, "a;<script>", 10);
	add(2, "b\n", 40);
	assert_int_equal(flametree_finish(&tree), 0);
	return 0;
}

static int drop_tree(void **state)
{
	(void)state;
	flametree_done(&tree);
	return 0;
}

static void folded_lines_have_no_separator_of_a_label(void **state)
{
	struct str out = { 0 };

	(void)state;
	assert_int_equal(flameforms_folded(&forms, &out), 0);
	assert_string_equal(str_borrow(&out), "main;b  40000\nmain;a:<script> 20000\n");
	str_done(&out);
}

static void a_page_tells_the_ranks_of_a_frame_and_escapes_its_name(void **state)
{
	struct str out = { 0 };
	const char *page;

	(void)state;
	assert_int_equal(flameforms_html(&forms, &out), 0);
	page = str_borrow(&out);
	assert_non_null(strstr(page, "@2,4|9"));
	assert_non_null(strstr(page, "@9|2,4, most on rank 9: 40.0 ms, mean of the others 0 ms"));
	assert_non_null(strstr(page, "a;&lt;script&gt;"));
	assert_null(strstr(page, "a;<script>"));
	str_done(&out);
}

static void a_rank_with_more_than_the_others_is_red_and_a_common_frame_is_not(void **state)
{
	struct str out = { 0 };
	const char *box;

	(void)state;
	assert_int_equal(flameforms_svg(&forms, &out), 0);
	box = strstr(str_borrow(&out), "heat h6");
	assert_non_null(box);
	assert_non_null(strstr(box, "<title>main"));	      /* 40 of 60 ms are on rank 9 */
	assert_non_null(strstr(str_borrow(&out), "heat h2")); /* a: not on rank 9 */
	str_done(&out);
}

/* Random boxes: each lies in its parent's, and siblings do not overlap. */
static void boxes_lie_in_their_callers_and_beside_each_other(void **state)
{
	static const struct flamebox boxes[] = {
		{ FLAMEBOX_ROOT, 60, "main", "main", "alike", false },
		{ 0, 40, "wide", "wide", "alike", false },
		{ 0, 50, "cut to what is left", "cut", "alike", false },
		{ 1, 1e9, "no wider than its caller", "caller", "alike", false },
		{ 3, -5, "negative", "negative", "alike", false },
		{ FLAMEBOX_ROOT, 40, "second", "second", "alike", false },
		{ 77, 40, "a later parent is none", "late", "alike", false },
	};
	const struct flamepicture picture = { .boxes = boxes,
					      .cnt = ARRAY_SIZE(boxes),
					      .total = 100,
					      .id = "id",
					      .title = "t",
					      .desc = "d" };
	struct flamepicture_left left;
	struct str out = { 0 };
	const char *at;
	double ends[8] = { 0 };

	(void)state;
	assert_int_equal(flamepicture_draw(&picture, &out, &left), 0);
	assert_int_equal(left.narrow, 2);
	for (at = str_borrow(&out); (at = strstr(at, "<rect ")) != NULL; at++) {
		double x, y, width;
		const char *place = strstr(at, "x=\"");

		assert_int_equal(sscanf(place, "x=\"%lf\" y=\"%lf\" width=\"%lf\"", &x, &y, &width),
				 3);
		assert_true(x >= ends[(int)(y / 20)] - 0.1);
		assert_true(x + width <= FLAMEPICTURE_WIDTH + 0.1);
		ends[(int)(y / 20)] = x + width;
	}
	str_done(&out);
}

static void every_form_survives_each_failed_allocation(void **state)
{
	static int (*const all[])(const struct flameforms *, struct str *) = { flameforms_folded,
									       flameforms_svg,
									       flameforms_html };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		int error = -ENOMEM;

		for (int n = 0; error == -ENOMEM; n++) {
			struct str out = { 0 };

			allocations_left = n;
			error = all[i](&forms, &out);
			allocations_left = -1;
			if (error != 0)
				assert_int_equal(out.len, 0);
			str_done(&out);
		}
		assert_int_equal(error, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_lines_have_no_separator_of_a_label),
		cmocka_unit_test(a_page_tells_the_ranks_of_a_frame_and_escapes_its_name),
		cmocka_unit_test(a_rank_with_more_than_the_others_is_red_and_a_common_frame_is_not),
		cmocka_unit_test(boxes_lie_in_their_callers_and_beside_each_other),
		cmocka_unit_test(every_form_survives_each_failed_allocation),
	};

	return cmocka_run_group_tests(tests, make_tree, drop_tree);
}
