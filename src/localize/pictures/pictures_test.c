/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures show of jobs played by the clockwork. */
#include "localize/pictures/pictures.h"

#include "localize/test_fixture.h"

#include <math.h>
#include <string.h>

#define LATE 3
#define NAP_MS 200.0

static double sum(const double *values, size_t cnt)
{
	double ret = 0;

	for (size_t i = 0; i < cnt; i++)
		ret += values[i];
	return ret;
}

static double longest_wait(const struct report_lane *lane)
{
	double ret = 0;

	for (size_t i = 0; i < lane->meeting_cnt; i++)
		ret = fmax(ret, lane->meetings[i].wait_ms);
	return ret;
}

static void lateness_is_that_of_the_late_worker_in_each_iteration(void **state)
{
	const struct report_worker *late;

	(void)state;
	test_play_late(&job, &test_nap, LATE, NAP_MS);
	report = test_localize(&job, NULL);
	late = &report.workers[LATE];
	assert_non_null(late->late_ms);
	for (size_t i = 0; i < late->iteration_cnt; i++)
		assert_in_range(late->late_ms[i], NAP_MS * 0.9, NAP_MS * 1.1);
	assert_true(sum(report.workers[0].late_ms, report.workers[0].iteration_cnt) < NAP_MS / 10);
}

static void the_culprit_waits_for_no_rank_and_the_others_for_its_nap(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, LATE, NAP_MS);
	test_shift_clock(&job, LATE, 7);
	report = test_localize(&job, NULL);
	assert_in_range(report.lanes.lane_cnt, 2, 3);
	assert_true(report.lanes.aligned);
	assert_int_equal(report.lanes.lanes[0].rank, LATE);
	assert_true(longest_wait(&report.lanes.lanes[0]) < 1);
	assert_in_range(longest_wait(&report.lanes.lanes[1]), NAP_MS * 0.9, NAP_MS * 1.1);
	/* On one clock, a collective ends for both at once. */
	assert_true(fabs(report.lanes.lanes[0].meetings[0].end_ms -
			 report.lanes.lanes[1].meetings[0].end_ms) < 1);
}

static void shares_of_a_stretch_are_at_most_all_of_it(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, LATE, NAP_MS);
	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.lanes.lane_cnt; i++) {
		const struct report_lane *lane = &report.lanes.lanes[i];

		assert_true(lane->stretch_cnt > 0);
		for (size_t s = 0; s < lane->stretch_cnt; s++) {
			assert_true(sum(lane->stretches[s].class_frac, CLASS_CNT) < 1 + 1e-9);
			assert_true(lane->stretches[s].begin_ms < lane->stretches[s].end_ms);
		}
	}
}

/* The place of the nap is longer on the late worker than on its peers, and so are its callers. */
static void stacks_have_the_difference_to_the_peers(void **state)
{
	double most = 0;
	bool found = false, alone = false;

	(void)state;
	test_play_late(&job, &test_nap, LATE, NAP_MS);
	report = test_localize(&job, NULL);
	assert_int_equal(report.flame.rank, LATE);
	assert_true(report.flame.culprit);
	assert_int_equal(report.flame.peer_cnt, job.cnt - 1);
	assert_int_equal(report.flame.compared_cnt, job.cnt);
	for (size_t i = 0; i < report.flame.node_cnt; i++) {
		const struct report_flame_node *node = &report.flame.nodes[i];

		assert_true(node->parent < (int)i);
		if (node->parent >= 0)
			assert_true(node->ms <= report.flame.nodes[node->parent].ms + 1e-6);
		most = fmax(most, node->ms - node->peers_ms);
		assert_true(node->rank_cnt < report.flame.compared_cnt);
		alone |= node->rank_cnt == 1 && node->ranks[0] == LATE;
		found |= strstr(node->name, test_nap.context) != NULL;
	}
	assert_true(found);
	assert_true(alone);
	assert_in_range(most, NAP_MS * 0.9, NAP_MS * 1.1);
}

static void a_healthy_job_has_no_culprit_in_its_pictures(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, LATE, 0);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.lanes.lane_cnt, 0);
	assert_false(report.flame.culprit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(lateness_is_that_of_the_late_worker_in_each_iteration,
					  done),
		cmocka_unit_test_teardown(the_culprit_waits_for_no_rank_and_the_others_for_its_nap,
					  done),
		cmocka_unit_test_teardown(shares_of_a_stretch_are_at_most_all_of_it, done),
		cmocka_unit_test_teardown(stacks_have_the_difference_to_the_peers, done),
		cmocka_unit_test_teardown(a_healthy_job_has_no_culprit_in_its_pictures, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
