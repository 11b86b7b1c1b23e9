/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups side by side, of which one may take longer for its transfers. */
#include "localize/test_job.h"

#include <string.h>

#define PAIRS 3

/* The clockwork names the operation of each group differently. */
static void name_alike(struct test_job *job)
{
	for (size_t w = 0; w < job->cnt; w++) {
		vec_foreach(c, &job->workers[w].collectives)
			c->name = c->group_size == 2;
	}
}

/* Three groups of two workers, which take so many ms, and a group of all of them. */
static struct report play(const double transfer_ms[static PAIRS], const double late_ms)
{
	struct report report;
	struct test_job job;

	test_job_init(&job, 2 * PAIRS, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 2 * PAIRS; w++)
			test_work(&job, w, &test_mm, 60);
		if (late_ms > 0)
			test_work(&job, 2, &test_crop, late_ms);
		for (unsigned int g = 0; g < PAIRS; g++)
			test_meet(&job, 1 + g, 2 * (size_t)g, 2, transfer_ms[g]);
		test_meet(&job, 0, 0, 2 * PAIRS, 2);
	}
	test_finish(&job);
	name_alike(&job);
	report = test_localize(&job, NULL);
	test_job_done(&job);
	return report;
}

static bool says_link(const struct report *report)
{
	return test_find(report, "slow-link") != NULL;
}

static void a_group_slower_than_its_sisters_has_a_slow_link(void **state)
{
	struct report report = play((const double[]){ 10, 25, 10 }, 0);

	(void)state;
	assert_int_equal(report.finding_cnt, 1);
	assert_true(says_link(&report));
	test_assert_ranks(&report.findings[0], "2-3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 15, 0.1);
	report_done(&report);
}

static void groups_that_differ_by_a_little_are_healthy(void **state)
{
	struct report report = play((const double[]){ 10, 11, 10.5 }, 0);

	(void)state;
	assert_int_equal(report.finding_cnt, 0);
	report_done(&report);
}

/* With two of three the network between them may be what is slow; one fast group is no norm. */
static void most_groups_are_not_accused(void **state)
{
	struct report report = play((const double[]){ 25, 25, 10 }, 0);

	(void)state;
	assert_false(says_link(&report));
	report_done(&report);
}

/* The other member waits for it; the last to arrive shows that the transfer is as fast as ever. */
static void waiting_for_a_late_member_is_no_transfer(void **state)
{
	struct report report = play((const double[]){ 10, 10, 10 }, 20);

	(void)state;
	assert_int_equal(report.finding_cnt, 1);
	assert_false(says_link(&report));
	test_assert_ranks(&report.findings[0], "2");
	report_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_slower_than_its_sisters_has_a_slow_link),
		cmocka_unit_test(groups_that_differ_by_a_little_are_healthy),
		cmocka_unit_test(most_groups_are_not_accused),
		cmocka_unit_test(waiting_for_a_late_member_is_no_transfer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
