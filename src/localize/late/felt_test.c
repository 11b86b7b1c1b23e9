/* SPDX-License-Identifier: Apache-2.0 */
/* Which late ranks leave a job healthy: chance_explains() and felt_loss(), through localize(). */
#include "localize/late/felt.h"

#include "localize/test_job.h"

#include <stdio.h>
#include <string.h>

#define PLACES 8

static struct test_job job;
static struct report report;

static int done(void **state)
{
	(void)state;
	report_done(&report);
	test_job_done(&job);
	return 0;
}

/* Worker w spends ms, divided among so many functions that no single one stands out. */
static void spread(size_t w, double ms)
{
	static char names[PLACES][16];

	for (int i = 0; i < PLACES; i++) {
		struct test_place place = { .kind = KIND_KERNEL,
					    .name = names[i],
					    .class = CLASS_COMPUTE };

		(void)snprintf(names[i], sizeof(names[i]), "part%d", i);
		test_work(&job, w, &place, ms / PLACES);
	}
}

/* 16 iterations of 100 ms on 4 workers, of which late(iteration) needs 3 ms more. */
static void play(size_t (*late)(int iteration))
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 16; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			spread(w, w == late(i) ? 101 : 98);
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
}

static size_t always_2(int iteration)
{
	(void)iteration;
	return 2;
}

static size_t by_turns(int iteration)
{
	return (size_t)(iteration * 7 % 4);
}

static const char *find_note(const char *text)
{
	for (size_t i = 0; i < report.note_cnt; i++) {
		if (strstr(report.notes[i], text) != NULL)
			return report.notes[i];
	}
	return NULL;
}

static void a_rank_that_is_always_late_without_a_cause_is_named(void **state)
{
	(void)state;
	play(always_2);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(
		strstr(report.reason, "rank 2 arrives late by 3.0 ms per iteration (2.9 %)"));
}

/* 1 waits for 0 in their group, and so comes as late to 2: that does not excuse 0. */
static void a_rank_is_not_excused_by_those_that_it_makes_late(void **state)
{
	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 16; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			spread(w, w == 0 ? 101 : 90);
		test_meet(&job, 0, 0, 2, 2);
		test_meet(&job, 1, 2, 2, 2);
		test_meet(&job, 2, 1, 2, 2);
		test_meet(&job, 3, 0, 4, 2);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "0");
	assert_non_null(find_note("because it waits for other ranks itself"));
	assert_null(find_note("normal variation"));
}

static void ranks_that_are_late_by_turns_leave_a_job_healthy(void **state)
{
	struct localize_options options = localize_defaults();

	(void)state;
	options.min_gain_pct = 0.5; /* each loses 0.75 % */
	play(by_turns);
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_non_null(find_note("normal variation"));
}

/* The launching thread of w spent ms before each collective in a call of the driver. */
static void call(size_t w, const char *name, double ms)
{
	struct test_worker *worker = &job.workers[w];
	uint32_t function = (uint32_t)worker->fp.function_cnt;

	test_function(&job, w, test_frame(&job, w, FRAME_NONE, KIND_RUNTIME, name), CLASS_HOST, 0);
	for (size_t i = 0; i < worker->collectives.cnt; i++) {
		struct fp_share share = { .function = function, .ns = (int64_t)(ms * 1e6) };
		struct fp_collective *c = &worker->collectives.data[i];

		c->host_gated = true;
		c->host_first = (uint32_t)worker->shares.cnt;
		c->host_cnt = 1;
		assert_int_equal(vec_push(&worker->shares, share), 0);
	}
	worker->fp.shares = worker->shares.data;
	worker->fp.share_cnt = worker->shares.cnt;
}

static void a_rank_that_only_devices_wait_for_leaves_a_job_healthy(void **state)
{
	(void)state;
	play(always_2);
	for (size_t w = 0; w < 4; w++)
		call(w, "cudaLaunchKernel", 5);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_non_null(find_note("rank 2 is late by 3.0 ms per iteration (2.9 %), but only GPUs"));
}

static void a_rank_that_a_host_waits_for_does_not(void **state)
{
	(void)state;
	play(always_2);
	for (size_t w = 0; w < 4; w++)
		call(w, "cudaStreamSynchronize", 5);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rank_that_is_always_late_without_a_cause_is_named),
		TEST(a_rank_is_not_excused_by_those_that_it_makes_late),
		TEST(ranks_that_are_late_by_turns_leave_a_job_healthy),
		TEST(a_rank_that_only_devices_wait_for_leaves_a_job_healthy),
		TEST(a_rank_that_a_host_waits_for_does_not),
	};

	return cmocka_run_group_tests_name("felt", tests, NULL, NULL);
}
