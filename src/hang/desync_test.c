/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/desync.h"

#include "base/test_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANK_CNT 6
#define ENTERED_MAX 8

struct job {
	struct hang_record records[RANK_CNT];
	struct hang_entered entered[RANK_CNT][ENTERED_MAX];
};

static void job_make(struct job *job)
{
	memset(job, 0, sizeof(*job));
	for (int i = 0; i < RANK_CNT; i++)
		job->records[i] = (struct hang_record){ .rank = i, .entered = job->entered[i] };
}

static struct hang_entered *enter(struct job *job, size_t rank, const char *group, int64_t number)
{
	struct hang_entered *entered = &job->entered[rank][job->records[rank].entered_cnt++];

	*entered = (struct hang_entered){ .group = group, .name = "allreduce", .number = number };
	return entered;
}

static void enter_by_name(struct job *job, size_t rank, const char *name, int64_t number)
{
	struct hang_entered *entered = enter(job, rank, "data 5ca1ab1e", number);

	entered->by_name = true;
	entered->name = name;
}

static size_t members_of(const struct job *job, struct desync *ret)
{
	return desync_find(job->records, RANK_CNT, ret) > 0 ? ret->member_cnt : 0;
}

static void the_largest_group_that_lacks_a_minority_counts(void **state)
{
	struct desync desync;
	struct job job;

	(void)state;
	job_make(&job);
	enter(&job, 0, "pair", 7);
	enter(&job, 1, "pair", 8);
	for (size_t i = 0; i < RANK_CNT; i++)
		enter(&job, i, "all", 5);
	assert_int_equal(members_of(&job, &desync), 2);
	assert_string_equal(desync.front->group, "pair");
	assert_int_equal(desync_entered(&desync, &job.records[0])->number, 7);
	assert_null(desync_entered(&desync, &job.records[2]));
	job.entered[2][0].number = 4;
	assert_int_equal(members_of(&job, &desync), RANK_CNT);
	assert_int_equal(desync.front->number, 5);
	/* One half: no minority. */
	job.entered[3][0].number = job.entered[4][0].number = 4;
	assert_int_equal(members_of(&job, &desync), 2);
}

/* Rank 3 lacks an all_gather, whose numbers are lower than those of the other collective. */
static void collectives_numbered_by_name_are_compared_by_name(void **state)
{
	struct desync desync;
	struct job job;

	(void)state;
	job_make(&job);
	for (size_t i = 0; i < RANK_CNT; i++) {
		enter_by_name(&job, i, "all_reduce", 250);
		enter_by_name(&job, i, "all_gather", i == 3 ? 99 : 100);
	}
	assert_int_equal(members_of(&job, &desync), RANK_CNT);
	assert_string_equal(desync.front->name, "all_gather");
	assert_int_equal(desync_entered(&desync, &job.records[3])->number, 99);
	assert_int_equal(desync_entered(&desync, &job.records[0])->number, 100);
}

/* They are numbered by pairs of ranks: rank 3 need not have sent what others have. */
static void sends_and_receives_are_left_out(void **state)
{
	struct desync desync;
	struct job job;

	(void)state;
	job_make(&job);
	for (size_t i = 0; i < RANK_CNT; i++)
		enter(&job, i, "pipe", i == 3 ? 1 : 5)->p2p = true;
	assert_int_equal(members_of(&job, &desync), 0);
}

/* Whether a minority of the members of that entry's group lacks it, which is the latest. */
static bool is_lacked(const struct job *job, struct desync *group)
{
	size_t behind = 0;

	for (size_t i = 0; i < RANK_CNT; i++) {
		const struct hang_entered *entered = desync_entered(group, &job->records[i]);

		if (entered != NULL && entered->number > group->front->number)
			return false;
		group->member_cnt += entered != NULL;
		behind += entered != NULL && entered->number < group->front->number;
	}
	return behind > 0 && (2 * behind < group->member_cnt || group->member_cnt == 2);
}

/* The definition: each entry is tried as the latest of its group. */
static bool find_by_all_pairs(const struct job *job, struct desync *ret)
{
	bool found = false;

	for (size_t i = 0; i < RANK_CNT; i++) {
		for (size_t j = 0; j < job->records[i].entered_cnt; j++) {
			struct desync group = { .front = &job->entered[i][j] };

			if (is_lacked(job, &group) &&
			    (!found || group.member_cnt > ret->member_cnt)) {
				*ret = group;
				found = true;
			}
		}
	}
	return found;
}

/* Entries of some of the six counters that the workers of a test have, in any order. */
static void enter_some(struct job *job, size_t rank, uint64_t *random)
{
	static const char *const groups[] = { "all", "pipe", "tensor" };
	static const char *const names[] = { "reduce", "gather" };
	size_t first = (size_t)test_below(random, 6);

	for (size_t i = 0; i < 6; i++) {
		size_t at = (first + i) % 6;
		int64_t number = 7 - (test_below(random, 4) == 0);

		if (test_below(random, 3) == 0)
			continue;
		if (at < ARRAY_SIZE(groups))
			enter(job, rank, groups[at], number);
		else if (at < 5)
			enter_by_name(job, rank, names[at - ARRAY_SIZE(groups)], number);
		else
			enter(job, rank, "data 5ca1ab1e", number);
	}
}

static void the_desync_is_the_one_that_comparing_all_pairs_finds(void **state)
{
	uint64_t random = 1;
	size_t found_cnt = 0;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct desync desync, expected;
		struct job job;
		bool found;

		job_make(&job);
		for (size_t i = 0; i < RANK_CNT; i++) {
			enter_some(&job, i, &random);
			if (test_below(&random, 6) == 0)
				job.records[i].entered_cnt = 0;
		}
		found = find_by_all_pairs(&job, &expected);
		assert_int_equal(desync_find(job.records, RANK_CNT, &desync), found);
		if (found) {
			assert_ptr_equal(desync.front, expected.front);
			assert_int_equal(desync.member_cnt, expected.member_cnt);
		}
		found_cnt += found;
	}
	assert_true(found_cnt > 500 && found_cnt < 4950);
}

static void complete_or_unknown_groups_have_no_desync(void **state)
{
	struct desync desync;
	struct job job;

	(void)state;
	job_make(&job);
	assert_int_equal(members_of(&job, &desync), 0);
	for (size_t i = 0; i < RANK_CNT; i++)
		enter(&job, i, "all", 5);
	assert_int_equal(members_of(&job, &desync), 0);
	job.records[1].entered_cnt = 0;
	assert_int_equal(members_of(&job, &desync), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_group_that_lacks_a_minority_counts),
		cmocka_unit_test(collectives_numbered_by_name_are_compared_by_name),
		cmocka_unit_test(sends_and_receives_are_left_out),
		cmocka_unit_test(the_desync_is_the_one_that_comparing_all_pairs_finds),
		cmocka_unit_test(complete_or_unknown_groups_have_no_desync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
