/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/waitgraph.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANKS 4
#define ALL "[0, 1, 2, 3]"

/* Ranks 0, 1 and 2, 3 are groups "t", all are group "d". */
struct job {
	struct hang_record records[RANKS];
	struct hang_entered entered[RANKS][2];
	struct arena arena;
	struct waitgraph graph;
};

enum { D, T };

/* Of group d all have finished 4, of group t 8. */
static void job_make(struct job *job)
{
	memset(job, 0, sizeof(*job));
	arena_init(&job->arena);
	for (int i = 0; i < RANKS; i++) {
		job->records[i] = (struct hang_record){ .rank = i,
							.entered = job->entered[i],
							.entered_cnt = 2 };
		job->entered[i][D] = (struct hang_entered){ .group = "d",
							    .name = "all_reduce",
							    .members = ALL,
							    .number = 4,
							    .last_finished = 4 };
		job->entered[i][T] = (struct hang_entered){ .group = i < 2 ? "t0" : "t1",
							    .name = "all_reduce",
							    .members = i < 2 ? "[0, 1]" : "[2, 3]",
							    .number = 8,
							    .last_finished = 8 };
	}
}

/* The rank launches the group's next collective at this time. */
static struct hang_entered *launch(struct job *job, int rank, int group, int64_t time)
{
	struct hang_entered *entered = &job->entered[rank][group];

	entered->number++;
	if (entered->open_name != NULL)
		return entered;
	entered->open = entered->number;
	entered->open_ns = time;
	entered->open_name = entered->name;
	return entered;
}

static void find(struct job *job, size_t cnt)
{
	assert_int_equal(waitgraph_find(job->records, cnt, &job->arena, &job->graph), 0);
}

/* Bits of the ranks that are marked. */
static unsigned int bits(const bool *flags)
{
	unsigned int ret = 0;

	for (unsigned int i = 0; i < RANKS; i++)
		ret |= flags[i] ? 1u << i : 0;
	return ret;
}

/* Rank 1 has launched nothing; its peer waits in t, the others for the peer in d. */
static void the_end_of_a_chain_is_behind_and_its_victim_is_not(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	(void)launch(&job, 0, T, 1);
	for (int rank = 2; rank < RANKS; rank++)
		(void)launch(&job, rank, D, 2);
	find(&job, RANKS);
	assert_true(job.graph.known);
	assert_false(job.graph.whole);
	assert_int_equal(bits(job.graph.behind), 1u << 1);
	assert_int_equal(bits(job.graph.other), 0);
	arena_done(&job.arena);
}

/* The same, and rank 1 is no record: it is absent only if nothing else explains the waits. */
static void a_rank_without_a_record_is_absent_if_chains_end_there_alone(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	for (int rank = 0; rank < 3; rank++)
		(void)launch(&job, rank, D, 2);
	find(&job, 3);
	assert_int_equal(job.graph.absent_cnt, 1);
	assert_int_equal(job.graph.absent[0], 3);
	arena_done(&job.arena);

	job_make(&job);
	(void)launch(&job, 0, D, 2);
	find(&job, 1);
	assert_int_equal(job.graph.absent_cnt, 0); /* three of four: they were not given */
	arena_done(&job.arena);

	job_make(&job);
	for (int rank = 0; rank < 2; rank++)
		(void)launch(&job, rank, D, 2);
	find(&job, 3);
	assert_int_equal(job.graph.absent_cnt, 0);
	assert_int_equal(bits(job.graph.behind), 1u << 2);
	arena_done(&job.arena);
}

static void another_operation_in_a_group_that_is_together_is_other(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	for (int rank = 0; rank < RANKS; rank++)
		launch(&job, rank, D, 2)->open_name = rank == 2 ? "broadcast" : "all_reduce";
	find(&job, RANKS);
	assert_true(job.graph.whole);
	assert_int_equal(bits(job.graph.other), 1u << 2);
	assert_int_equal(bits(job.graph.behind), 0);
	arena_done(&job.arena);
}

/* Two members without a majority, both are other; the ranks that wait for them are not. */
static void of_two_members_both_are_other(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	launch(&job, 0, T, 1)->open_name = "broadcast";
	(void)launch(&job, 1, T, 1);
	for (int rank = 0; rank < RANKS; rank++)
		(void)launch(&job, rank, D, 2);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.other), 3);
	arena_done(&job.arena);
}

static void a_device_that_has_not_begun_what_its_peers_have_is_unbegun(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	for (int rank = 0; rank < RANKS; rank++)
		launch(&job, rank, D, 2)->open_begun =
			rank == 3 ? HANG_WORK_QUEUED : HANG_WORK_BEGUN;
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.unbegun), 1u << 3);
	arena_done(&job.arena);
}

static void all_alike_and_nothing_open_show_no_rank(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	find(&job, RANKS);
	assert_false(job.graph.known);
	for (int rank = 0; rank < RANKS; rank++)
		(void)launch(&job, rank, D, 2);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind) | bits(job.graph.other) | bits(job.graph.unbegun),
			 0);
	arena_done(&job.arena);
}

/* Three of four have not entered what one has: rather that one has gone on alone. */
static void a_majority_is_not_behind(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	(void)launch(&job, 1, D, 2);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind), 0);
	arena_done(&job.arena);
}

/* The rank's first open entry is a transfer from one rank to another. */
static void transfer(struct job *job, int rank, int from, int to)
{
	job->entered[rank][T] = (struct hang_entered){ .group = "pipe",
						       .name = rank == from ? "send" : "recv",
						       .open_name = rank == from ? "send" : "recv",
						       .members = ALL,
						       .p2p = true,
						       .number = 90 + rank, /* of its own count */
						       .open = 90 + rank,
						       .last_finished = -1,
						       .open_from = from,
						       .open_to = to };
}

static void of_a_pipeline_the_stage_that_sends_nothing_is_behind(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	for (int rank = 1; rank < RANKS; rank++)
		transfer(&job, rank, rank - 1, rank);
	find(&job, RANKS);
	assert_true(job.graph.known);
	assert_int_equal(bits(job.graph.behind), 1u << 0);
	assert_int_equal(bits(job.graph.other), 0);
	arena_done(&job.arena);
}

static void a_stage_that_receives_nothing_holds_those_before_it(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	for (int rank = 0; rank < 3; rank++)
		transfer(&job, rank, rank, rank + 1);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind), 1u << 3);
	arena_done(&job.arena);

	job_make(&job); /* it has left no dump */
	for (int rank = 0; rank < 3; rank++)
		transfer(&job, rank, rank, rank + 1);
	find(&job, 3);
	assert_int_equal(bits(job.graph.behind), 0);
	assert_int_equal(job.graph.absent_cnt, 1);
	assert_int_equal(job.graph.absent[0], 3);
	arena_done(&job.arena);
}

static void collectives_and_transfers_are_one_chain(void **state)
{
	struct job job;

	(void)state;
	job_make(&job); /* 0, 1 wait in d for 2, who waits for 3 to send, which does nothing */
	(void)launch(&job, 0, D, 1);
	(void)launch(&job, 1, D, 1);
	transfer(&job, 2, 3, 2);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind), 1u << 3);
	arena_done(&job.arena);
}

static void transfers_without_an_end_accuse_none(void **state)
{
	struct job job;

	(void)state;
	job_make(&job); /* all receive in a ring */
	for (int rank = 0; rank < RANKS; rank++)
		transfer(&job, rank, (rank + 1) % RANKS, rank);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind) | bits(job.graph.other), 0);
	assert_int_equal(job.graph.absent_cnt, 0);
	arena_done(&job.arena);

	job_make(&job); /* both are at it: the device or the network */
	transfer(&job, 0, 0, 1);
	transfer(&job, 1, 0, 1);
	transfer(&job, 2, 1, 2);
	transfer(&job, 3, 2, 3);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind) | bits(job.graph.other), 0);
	arena_done(&job.arena);

	job_make(&job); /* with whom is not known */
	for (int rank = 1; rank < RANKS; rank++)
		transfer(&job, rank, 0, 0);
	find(&job, RANKS);
	assert_false(job.graph.whole);
	assert_int_equal(bits(job.graph.behind) | bits(job.graph.other), 0);
	assert_int_equal(job.graph.absent_cnt, 0);
	arena_done(&job.arena);
}

/* 2 sends to 1 and nothing passes; 0 waits for 1, and 3 for all of them. */
static void who_waits_behind_a_transfer_without_an_end_is_a_victim(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	transfer(&job, 0, 1, 0);
	transfer(&job, 1, 2, 1);
	transfer(&job, 2, 2, 1);
	(void)launch(&job, 3, D, 2);
	find(&job, RANKS);
	assert_int_equal(bits(job.graph.behind) | bits(job.graph.other), 0);
	arena_done(&job.arena);
}

static void without_memory_nothing_is_found(void **state)
{
	struct job job;
	int error = -ENOMEM;

	(void)state;
	job_make(&job);
	for (int rank = 0; rank < RANKS; rank++)
		(void)launch(&job, rank, D, 2);
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = waitgraph_find(job.records, RANKS, &job.arena, &job.graph);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	arena_done(&job.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_chain_is_behind_and_its_victim_is_not),
		cmocka_unit_test(a_rank_without_a_record_is_absent_if_chains_end_there_alone),
		cmocka_unit_test(another_operation_in_a_group_that_is_together_is_other),
		cmocka_unit_test(of_two_members_both_are_other),
		cmocka_unit_test(a_device_that_has_not_begun_what_its_peers_have_is_unbegun),
		cmocka_unit_test(all_alike_and_nothing_open_show_no_rank),
		cmocka_unit_test(a_majority_is_not_behind),
		cmocka_unit_test(of_a_pipeline_the_stage_that_sends_nothing_is_behind),
		cmocka_unit_test(a_stage_that_receives_nothing_holds_those_before_it),
		cmocka_unit_test(collectives_and_transfers_are_one_chain),
		cmocka_unit_test(transfers_without_an_end_accuse_none),
		cmocka_unit_test(who_waits_behind_a_transfer_without_an_end_is_a_victim),
		cmocka_unit_test(without_memory_nothing_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
