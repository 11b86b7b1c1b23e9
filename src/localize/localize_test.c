/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of its job and its workers; what findings_test.c leaves of localize.c. */
#include "localize/localize.h"

#include "base/test_alloc.h"
#include "localize/absences.h"
#include "localize/peers.h"
#include "localize/test_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the job --- */

/* The late worker's trace is absent: the report must not say that no worker was late. */
static void without_the_late_worker_the_wait_has_no_cause(void **state)
{
	struct localize_options options = localize_defaults();

	(void)state;
	test_play_late(&job, &test_nap, 3, 200);
	job.cnt = 3;
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_non_null(strstr(report.reason,
			       "rank 3's trace is missing, and those present wait up to "
			       "202 ms an iteration for a missing rank"));
	report_done(&report);
	options.workers_expected = 3;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	report_done(&report);
	job.cnt = 4;
}

static void without_workers_nothing_is_concluded(void **state)
{
	(void)state;
	test_job_init(&job, 0, 0, 0);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_string_equal(report.reason, "no worker could be analyzed");
}

static void one_iteration_is_too_short_to_conclude(void **state)
{
	(void)state;
	test_job_init(&job, 4, 0, 0);
	test_iterate(&job);
	for (size_t w = 0; w < 4; w++)
		test_work(&job, w, &test_mm, 98);
	test_meet(&job, 0, 0, 4, 2);
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "too short"));
}

/* It is one place, and three others wait for half of the iteration. */
static void one_iteration_is_enough_where_a_rank_stands_still_for_half_of_it(void **state)
{
	(void)state;
	for (int ms = 60; ms <= 300; ms += 240) {
		test_job_init(&job, 4, 0, 0);
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			if (w == 2)
				test_work(&job, w, &test_nap, ms);
			test_work(&job, w, &test_mm, 100);
		}
		test_meet(&job, 0, 0, 4, 5);
		test_finish(&job);
		report = test_localize(&job, NULL);
		assert_int_equal(report.verdict,
				 ms > 100 ? VERDICT_ABNORMAL : VERDICT_INCONCLUSIVE);
		assert_int_equal(report.finding_cnt, 1);
		test_assert_ranks(&report.findings[0], "2");
		report_done(&report);
		test_job_done(&job);
	}
}

/* Six iterations of 100 ms: 300 samples of each worker. */
static void a_job_that_lost_much_of_its_window_is_not_called_healthy(void **state)
{
	static const struct {
		struct trace_drops drops;
		uint64_t events;
		enum verdict verdict;
		const char *reason;
	} cases[] = {
		{ { .flight_late = 60 }, 0, VERDICT_HEALTHY, "" },
		{ { .flight_late = 40, .flight_unreadable = 40 }, 0, VERDICT_INCONCLUSIVE, " 2" },
		{ { .flight_tables = 9999 }, 0, VERDICT_INCONCLUSIVE, "100 %" },
		{ { .flight_lost = 90 }, 0, VERDICT_HEALTHY, "" },
		{ { .flight_lost = 300 }, 300, VERDICT_INCONCLUSIVE, "rank 2 lost 33 %" },
		{ { .flight_lost = 300 }, 9000, VERDICT_HEALTHY, "" },
		{ { .flight_invalid = 200, .flight_lanes = 200 }, 0, VERDICT_INCONCLUSIVE, "" },
		{ { .no_interval = 9999 }, 0, VERDICT_HEALTHY, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		test_play_late(&job, &test_nap, SIZE_MAX, 0);
		job.workers[2].fp.drops = cases[i].drops;
		job.workers[2].fp.event_cnt = cases[i].events;
		report = test_localize(&job, NULL);
		assert_int_equal(report.verdict, cases[i].verdict);
		assert_non_null(strstr(report.reason, cases[i].reason));
		done(state);
	}
}

static void findings_are_reported_despite_losses(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, 3, 200);
	job.workers[2].fp.drops.flight_lost = 9999;
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
}

static bool has_note(const char *text)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strcmp(report.notes[i], text) == 0)
			return true;
	}
	return false;
}

static void notes_of_losses_agree_in_number(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, 3, 200);
	job.workers[2].fp.drops.flight_late = 1;
	job.workers[1].fp.drops.bad_value = job.workers[2].fp.drops.bad_value = 1;
	report = test_localize(&job, NULL);
	assert_true(has_note("1 stack sample was late"));
	assert_true(has_note("2 values out of range or of a wrong type"));
}

static void missing_workers_are_listed_and_leave_it_open(void **state)
{
	struct localize_options options = localize_defaults();

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	job.workers[3].fp.rank = 6;
	options.workers_expected = 7;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_int_equal(report.missing_cnt, 3);
	assert_int_equal(report.missing[0], 3);
	assert_int_equal(report.missing[2], 5);
	report_done(&report);
	options.workers_expected = 16;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_string_equal(report.reason, "the traces of ranks 3-5,7-15 are missing; no fault "
					   "shows in those present: to decide, add the missing "
					   "traces, or record all ranks at the same steps");
}

static void chosen_ranks_are_all_that_is_expected(void **state)
{
	static const int chosen[] = { 1, 3, 8 };
	struct localize_options options = localize_defaults();

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	job.fps[0] = job.fps[1];
	job.fps[1] = job.fps[3];
	job.cnt = 2;
	options.ranks_expected = chosen;
	options.rank_expected_cnt = ARRAY_SIZE(chosen);
	report = test_localize(&job, &options);
	assert_int_equal(report.workers_expected, 3);
	assert_int_equal(report.missing_cnt, 1);
	assert_int_equal(report.missing[0], 8);
	report_done(&report);
	job.cnt = 4;
}

static void the_largest_rank_is_a_lower_bound_of_the_world_size(void **state)
{
	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.world_size = -1;
	job.workers[3].fp.rank = 5;
	report = test_localize(&job, NULL);
	assert_int_equal(report.workers_expected, 6);
	assert_int_equal(report.missing_cnt, 2);
}

static void assert_absent(const char *source, const char *why)
{
	for (size_t i = 0; i < report.absence_cnt; i++) {
		if (strcmp(report.absences[i].source, source) == 0 &&
		    strcmp(report.absences[i].why, why) == 0)
			return;
	}
	fail_msg("%s is not absent because \"%s\"", source, why);
}

/* Four workers with two GPUs each on two hosts: numbers 0 to 3 on both. */
static void why_gpus_were_not_sampled_is_reported_once(void **state)
{
	struct fp_absence absences[][2] = {
		{ { 0, "no permission" }, { 2, "no permission" } },
		{ { 1, "no permission" }, { 3, "crashed" } },
		{ { 0, "no permission" }, { -1, "no driver" } },
		{ { 1, "no permission" }, { -1, "no driver" } },
	};
	size_t before;

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	report = test_localize(&job, NULL);
	before = report.absence_cnt;
	report_done(&report);
	for (size_t w = 0; w < 4; w++) {
		job.workers[w].fp.absences = absences[w];
		job.workers[w].fp.absence_cnt = 2;
	}
	report = test_localize(&job, NULL);
	memset(absences, 0, sizeof(absences)); /* the report has its own */
	assert_int_equal(report.absence_cnt, before + 3);
	assert_absent("counters of GPU 0-2", "no permission");
	assert_absent("counters of GPU 3", "crashed");
	assert_absent("GPUs", "no driver");
}

static void a_job_without_gpus_misses_none(void **state)
{
	struct fp_absence absence = { -1, "no driver" };

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	for (size_t w = 0; w < 4; w++) {
		job.workers[w].fp.has_device = false;
		job.workers[w].fp.absences = &absence;
		job.workers[w].fp.absence_cnt = 1;
	}
	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.absence_cnt; i++)
		assert_string_not_equal(report.absences[i].source, "GPUs");
}

static void absences_of_gpus_are_limited(void **state)
{
	struct fp_absence absences[1000];
	char why[1000][16];

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(why[i], sizeof(why[i]), "reason %d", i);
		absences[i] = (struct fp_absence){ i, why[i] };
	}
	job.workers[0].fp.absences = absences;
	job.workers[0].fp.absence_cnt = 1000;
	report = test_localize(&job, NULL);
	assert_in_range(report.absence_cnt, ABSENCES_GPU_MAX, ABSENCES_GPU_MAX + 4);
}

/* Whether coarse samples are reported for kernels with this deviation of utilization. */
static bool reports_coarse(double sigma)
{
	bool reported = false;

	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	for (size_t w = 0; w < 4; w++) {
		for (size_t i = 0; i < job.workers[w].functions.cnt; i++) {
			struct fp_function *f = &job.workers[w].functions.data[i];

			if (f->class == CLASS_COMPUTE)
				test_utilize(f, RESOURCE_SM_ACTIVE, 0.6, sigma);
		}
	}
	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.absence_cnt; i++)
		reported |= strncmp(report.absences[i].why, "samples are further apart", 25) == 0;
	report_done(&report);
	test_job_done(&job);
	return reported;
}

static void samples_coarser_than_functions_are_reported(void **state)
{
	(void)state;
	assert_false(reports_coarse(0));
	assert_true(reports_coarse((double)NAN));
	test_play_late(&job, &test_nap, SIZE_MAX, 0); /* for what ends the test */
	report = test_localize(&job, NULL);
}

/* --- robustness --- */

static void two_workers_of_one_rank_are_an_error(void **state)
{
	struct localize_options options = localize_defaults();
	struct err err = { "" };

	(void)state;
	test_play_late(&job, &test_nap, SIZE_MAX, 0);
	job.workers[0].fp.rank = 2;
	assert_int_equal(localize(job.fps, job.cnt, &options, &report, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rank 2: expected one worker, found two"));
}

static void the_order_of_the_fingerprints_does_not_matter(void **state)
{
	struct report first, again;
	const struct fingerprint *swap;

	(void)state;
	test_play_late(&job, &test_nap, 2, 20);
	first = test_localize(&job, NULL);
	swap = job.fps[0];
	job.fps[0] = job.fps[2];
	job.fps[2] = swap;
	again = test_localize(&job, NULL);
	assert_int_equal(first.finding_cnt, again.finding_cnt);
	assert_string_equal(first.findings[0].title, again.findings[0].title);
	assert_string_equal(first.findings[0].key, again.findings[0].key);
	report_done(&first);
	report_done(&again);
}

static void the_report_outlives_the_fingerprints(void **state)
{
	char name[] = "forward", source[] = "somewhere";
	struct test_place place = { name, KIND_OPERATOR, "idle after aten::view", CLASS_IDLE };

	(void)state;
	test_play_late(&job, &place, 2, 20);
	job.workers[1].fp.source = source;
	report = test_localize(&job, NULL);
	test_job_done(&job);
	memset(name, 'x', sizeof(name) - 1);
	memset(source, 'x', sizeof(source) - 1);
	assert_string_equal(report.findings[0].name, "idle in forward, after aten::view");
	assert_string_equal(report.workers[1].source, "somewhere");
}

/* --- peers --- */

/* Two pipeline stages: different kernels, and the second stage computes twice as long. */
static void pipeline_stages_are_compared_apart(void **state)
{
	static const struct test_place stages[2] = { { NULL, KIND_KERNEL, "embedding",
						       CLASS_COMPUTE },
						     { NULL, KIND_KERNEL, "head", CLASS_COMPUTE } };
	struct job joined;

	(void)state;
	test_job_init(&job, 16, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 16; w++)
			test_work(&job, w, &stages[w / 8], w < 8 ? 40 : 80);
	}
	test_finish(&job);
	assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
	assert_int_equal(peers_find(&joined), 0);
	assert_int_equal(joined.group_cnt, 2);
	for (size_t w = 0; w < 16; w++)
		assert_int_equal(joined.workers[w].group, w / 8);
	job_done(&joined);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
}

/* One worker computed once what the others did in too little time to be kept. */
static void workers_that_hardly_compute_are_peers(void **state)
{
	static const struct test_place odd = { NULL, KIND_KERNEL, "gemm_nn", CLASS_COMPUTE };
	static const struct test_place usual = { NULL, KIND_KERNEL, "gemm_tn", CLASS_COMPUTE };
	struct job joined;

	(void)state;
	test_job_init(&job, 3, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 3; w++) {
			test_work(&job, w, &test_crop, 97);
			test_work(&job, w, &usual, 1);
		}
		test_work(&job, 2, &odd, 2);
	}
	test_finish(&job);
	assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
	assert_int_equal(peers_find(&joined), 0);
	assert_int_equal(joined.group_cnt, 1);
	job_done(&joined);
}

static void a_slow_worker_stays_among_its_peers(void **state)
{
	struct job joined;

	(void)state;
	test_play_late(&job, &test_mm, 1, 300);
	assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
	assert_int_equal(peers_find(&joined), 0);
	assert_int_equal(joined.group_cnt, 1);
	job_done(&joined);
}

/* --- memory --- */

static void failed_allocations_are_errors_and_leak_nothing(void **state)
{
	struct localize_options options = localize_defaults();
	struct err err;
	int error = -ENOMEM;
	size_t failed = 0;

	(void)state;
	test_play_late(&job, &test_nap, 2, 20);
	for (int n = 0; error != 0; n++) {
		allocations_left = n;
		error = localize(job.fps, job.cnt, &options, &report, &err);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
		failed += error != 0;
	}
	assert_true(failed > 20);
	test_assert_ranks(&report.findings[0], "2");
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_the_late_worker_the_wait_has_no_cause),
		TEST(without_workers_nothing_is_concluded),
		TEST(one_iteration_is_too_short_to_conclude),
		TEST(one_iteration_is_enough_where_a_rank_stands_still_for_half_of_it),
		TEST(a_job_that_lost_much_of_its_window_is_not_called_healthy),
		TEST(findings_are_reported_despite_losses),
		TEST(notes_of_losses_agree_in_number),
		TEST(missing_workers_are_listed_and_leave_it_open),
		TEST(chosen_ranks_are_all_that_is_expected),
		TEST(the_largest_rank_is_a_lower_bound_of_the_world_size),
		TEST(why_gpus_were_not_sampled_is_reported_once),
		TEST(a_job_without_gpus_misses_none),
		TEST(absences_of_gpus_are_limited),
		TEST(samples_coarser_than_functions_are_reported),
		TEST(two_workers_of_one_rank_are_an_error),
		TEST(the_order_of_the_fingerprints_does_not_matter),
		TEST(the_report_outlives_the_fingerprints),
		TEST(pipeline_stages_are_compared_apart),
		TEST(workers_that_hardly_compute_are_peers),
		TEST(a_slow_worker_stays_among_its_peers),
		TEST(failed_allocations_are_errors_and_leak_nothing),
	};

	return cmocka_run_group_tests_name("localize", tests, NULL, NULL);
}
