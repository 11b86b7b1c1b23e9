/* SPDX-License-Identifier: Apache-2.0 */
#include "model/flame/flametree.h"

#include "base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Adds "a b c" as a stack. */
static uint32_t add(struct flametree *tree, const char *stack, double weight, uint32_t member)
{
	char text[128];
	uint32_t node = FLAMETREE_ROOT;
	char *rest = text, *word;

	(void)snprintf(text, sizeof(text), "%s", stack);
	while ((word = strsep(&rest, " ")) != NULL) {
		const uint32_t label = flametree_label(tree, word);

		assert_int_not_equal(label, STRTAB_NONE);
		node = flametree_child(tree, node, label, FLAMETREE_PYTHON, member);
		assert_int_not_equal(node, FLAMETREE_NONE);
	}
	flametree_weigh(tree, node, weight);
	return node;
}

static void flametree_merges_equal_stacks_and_sums_their_weight(void **state)
{
	struct flametree tree;
	uint32_t main_node, b, c;

	(void)state;
	assert_int_equal(flametree_init(&tree), 0);
	b = add(&tree, "main a b", 3, 0);
	c = add(&tree, "main a c", 5, 1);
	assert_int_equal(add(&tree, "main a b", 4, 1), b);
	main_node = add(&tree, "main", 1, 1);
	flametree_end_member(&tree, 1);
	(void)add(&tree, "main a c", 7, 2);
	flametree_end_member(&tree, 2);
	assert_int_equal(flametree_finish(&tree), 0);
	assert_int_equal(tree.nodes.cnt, 5);
	assert_float_equal(tree.nodes.data[FLAMETREE_ROOT].total, 20, 0);
	assert_float_equal(tree.nodes.data[main_node].total, 20, 0);
	assert_float_equal(tree.nodes.data[b].total, 7, 0);
	assert_int_equal(tree.nodes.data[b].members.cnt, 2);
	assert_int_equal(tree.nodes.data[c].members.cnt, 2);
	assert_int_equal(tree.nodes.data[c].members.data[0], 1);
	assert_float_equal(tree.nodes.data[c].most, 7, 0);
	assert_int_equal(tree.nodes.data[c].most_member, 2);
	assert_float_equal(tree.nodes.data[main_node].most, 13, 0);
	assert_int_equal(tree.nodes.data[main_node].most_member, 1);
	flametree_done(&tree);
}

static void flametree_visits_callers_first_and_heavier_siblings_before_lighter(void **state)
{
	static const char *const expected[] = { "", "z", "y", "w", "x", "v" };
	struct flametree tree;
	uint32_t at = FLAMETREE_ROOT;
	size_t cnt = 0;

	(void)state;
	assert_int_equal(flametree_init(&tree), 0);
	(void)add(&tree, "v", 1, 0);
	(void)add(&tree, "z x", 2, 0);
	(void)add(&tree, "z y w", 3, 0);
	assert_int_equal(flametree_finish(&tree), 0);
	for (; at != FLAMETREE_NONE; at = flametree_next(&tree, at)) {
		assert_in_range(cnt, 0, ARRAY_SIZE(expected) - 1);
		assert_string_equal(flametree_text(&tree, at), expected[cnt++]);
	}
	assert_int_equal(cnt, ARRAY_SIZE(expected));
	flametree_done(&tree);
}

/* Totals against a sum over all nodes of the subtree, found by walking up. */
static void flametree_totals_are_those_of_a_brute_force_sum(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct flametree tree;
		uint32_t visited = 0;

		assert_int_equal(flametree_init(&tree), 0);
		for (int i = 0; i < 60; i++) {
			uint32_t node = FLAMETREE_ROOT;
			const uint64_t depth = 1 + splitmix_next(&seed) % 5;

			for (uint64_t d = 0; d < depth; d++) {
				char name[2] = { (char)('a' + splitmix_next(&seed) % 3), '\0' };

				node = flametree_child(&tree, node, flametree_label(&tree, name),
						       FLAMETREE_OPERATOR, 0);
			}
			flametree_weigh(&tree, node, (double)(splitmix_next(&seed) % 100));
		}
		assert_int_equal(flametree_finish(&tree), 0);
		for (uint32_t i = 0; i < tree.nodes.cnt; i++) {
			double sum = 0;

			for (uint32_t j = 0; j < tree.nodes.cnt; j++) {
				uint32_t up = j;

				while (up != i && up != FLAMETREE_ROOT)
					up = tree.nodes.data[up].parent;
				sum += up == i ? tree.nodes.data[j].self : 0;
			}
			assert_float_equal(tree.nodes.data[i].total, sum, 0);
		}
		for (uint32_t at = 0; at != FLAMETREE_NONE; at = flametree_next(&tree, at))
			visited++;
		assert_int_equal(visited, tree.nodes.cnt);
		flametree_done(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flametree_merges_equal_stacks_and_sums_their_weight),
		cmocka_unit_test(
			flametree_visits_callers_first_and_heavier_siblings_before_lighter),
		cmocka_unit_test(flametree_totals_are_those_of_a_brute_force_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
