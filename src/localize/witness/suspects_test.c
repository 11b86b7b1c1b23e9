/* SPDX-License-Identifier: Apache-2.0 */
/* Which place a late rank is accused of, through localize(). */
#include "localize/witness/suspects.h"

#include "localize/test_fixture.h"

#include <string.h>

static const struct test_place gather = { NULL, KIND_OPERATOR, "Gather", CLASS_HOST };
static const struct test_place unlisted = { NULL, KIND_OTHER, "what is not listed", CLASS_HOST };

/* Four ranks; rank 1 is late by known_ms in Gather, and by 30 ms of which no function is known. */
static void play(double known_ms)
{
	test_shares *shares;

	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 68);
		test_work(&job, 1, &gather, known_ms);
		test_work(&job, 1, &unlisted, 30);
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
	shares = &job.workers[1].shares;
	for (size_t i = 0; i < shares->cnt; i++) {
		const struct fp_function *f =
			&job.workers[1].functions.data[shares->data[i].function];

		if (strcmp(job.workers[1].frames.data[f->frame].name, unlisted.name) == 0)
			shares->data[i].function = FRAME_NONE;
	}
	job.workers[1].fp.shares = shares->data;
	report = test_localize(&job, NULL);
}

static bool is_gather_accused(void)
{
	for (size_t i = 0; i < report.finding_cnt; i++) {
		if (strcmp(report.findings[i].name, gather.name) == 0)
			return true;
	}
	return false;
}

static void a_place_with_little_of_the_loss_is_not_the_reason(void **state)
{
	(void)state;
	play(4);
	assert_false(is_gather_accused());
	(void)done(NULL);
	play(20);
	assert_true(is_gather_accused());
	test_assert_ranks(&report.findings[0], "1");
}

/* Rank 1 is late by 30 ms of Python; the thread of rank 4 is there for hidden_ms, while its device works. */
static void play_hidden(double hidden_ms)
{
	uint32_t frame;

	test_job_init(&job, 6, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 6; w++)
			test_work(&job, w, &test_mm, 98);
		test_work(&job, 1, &test_crop, 30);
		test_meet(&job, 0, 0, 6, 2);
	}
	test_finish(&job);
	frame = test_frame(&job, 4, FRAME_NONE, test_crop.kind, test_crop.name);
	test_function(&job, 4, frame, test_crop.class, 0)->thread_ns =
		(int64_t)(hidden_ms * 6 * 1e6);
	report = test_localize(&job, NULL);
}

static void a_rank_whose_device_hides_the_same_is_accused_with_it(void **state)
{
	(void)state;
	play_hidden(29);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "1,4");
	(void)done(NULL);
	play_hidden(5);
	test_assert_ranks(&report.findings[0], "1");
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_place_with_little_of_the_loss_is_not_the_reason),
		TEST(a_rank_whose_device_hides_the_same_is_accused_with_it),
	};

	return cmocka_run_group_tests_name("suspects", tests, NULL, NULL);
}
