/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/reach.h"

#include "summarize/test_trace.h"

/* Two hosts of two ranks; the host of rank 4 is unknown. */
static const struct rank_host list[] = { { 0, "a" }, { 1, "a" }, { 2, "b" }, { 3, "b" } };

static void a_list_of_ranks_is_judged_by_their_hosts(void **state)
{
	static const struct {
		const char *ranks;
		int size;
		enum reach reach;
	} cases[] = {
		{ "[0, 1]", 2, REACH_INSIDE },
		{ "[0,1]", -1, REACH_INSIDE },
		{ "[1]", 0, REACH_INSIDE },
		{ "[0, 2]", 2, REACH_ACROSS },
		{ "[4, 2]", 2, REACH_ACROSS },
		{ "[0, 4]", 2, REACH_UNKNOWN },
		{ "[0, 1]", 3, REACH_UNKNOWN }, /* not all ranks are listed */
		{ "[0, 1, ..., 1]", -1, REACH_UNKNOWN },
		{ "[0, ..., 3]", 4, REACH_ACROSS },
		{ "[]", 2, REACH_UNKNOWN },
		{ "", 0, REACH_UNKNOWN },
		{ "[0, -1]", 2, REACH_UNKNOWN },
		{ "[0, 99999999999999999999999]", 2, REACH_UNKNOWN },
		{ "all", 1, REACH_INSIDE },
	};
	const struct rank_hosts hosts = { list, ARRAY_SIZE(list), "a", false };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			reach_of(&hosts, &(struct reach_group){ cases[i].ranks, cases[i].size, 8 }),
			cases[i].reach);
}

/* The agent's records name no ranks: with all ranks on one host none are needed. */
static void a_job_of_one_host_stays_inside(void **state)
{
	const struct rank_hosts hosts = { list, 2, "a", false },
				both = { list, ARRAY_SIZE(list), "a", false };

	(void)state;
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 2, 2 }), REACH_INSIDE);
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 2, 3 }), REACH_UNKNOWN);
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 2, -1 }), REACH_UNKNOWN);
	assert_int_equal(reach_of(&both, &(struct reach_group){ "", 2, 4 }), REACH_UNKNOWN);
}

static void a_rank_missing_from_a_complete_list_is_on_another_host(void **state)
{
	const struct rank_hosts hosts = { list, 2, "a", true };

	(void)state;
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "[0, 5]", 2, 8 }), REACH_ACROSS);
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "[0, 1]", 2, 8 }), REACH_INSIDE);
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 2, 8 }), REACH_UNKNOWN);
}

static void a_group_of_more_ranks_than_the_host_has_leaves_it(void **state)
{
	struct rank_hosts hosts = { list, 2, "a", true };

	(void)state;
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 3, -1 }), REACH_ACROSS);
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "[0, ..., 1]", 3, 8 }),
			 REACH_ACROSS);
	hosts.complete = false;
	assert_int_equal(reach_of(&hosts, &(struct reach_group){ "", 3, 8 }), REACH_UNKNOWN);
}

static void without_hosts_nothing_is_known(void **state)
{
	const struct rank_hosts none = { 0 }, nowhere = { list, ARRAY_SIZE(list), NULL, false };
	const struct reach_group group = { "[0, 1]", 2, 4 };

	(void)state;
	assert_int_equal(reach_of(&none, &group), REACH_UNKNOWN);
	assert_int_equal(reach_of(&nowhere, &group), REACH_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_ranks_is_judged_by_their_hosts),
		cmocka_unit_test(a_job_of_one_host_stays_inside),
		cmocka_unit_test(a_rank_missing_from_a_complete_list_is_on_another_host),
		cmocka_unit_test(a_group_of_more_ranks_than_the_host_has_leaves_it),
		cmocka_unit_test(without_hosts_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
