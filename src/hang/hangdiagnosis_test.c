/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all ranks become a report, from the states of processes and their collectives. */
#include "hang/hangdiagnosis.h"

#include "base/test_alloc.h"
#include "base/test_random.h"
#include "hang/hangrules.h"
#include "hang/longcalls.h"
#include "hang/meetings.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RANKS 4
#define WAITS "train.py(1): main\ntorch/distributed/c10d.py(9): all_reduce"
#define FUTEX "<system call futex>"

struct job {
	struct hang_record records[RANKS];
	struct hang_entered entered[RANKS][3];
};

static void job_make(struct job *job)
{
	memset(job, 0, sizeof(*job));
	for (int i = 0; i < RANKS; i++)
		job->records[i] = (struct hang_record){ .rank = i,
							.host = "",
							.source = "test",
							.stack = WAITS,
							.leaf = FUTEX,
							.awaited = "",
							.ended = "",
							.says = "",
							.child = "",
							.process = 'S',
							.marks_known = true,
							.step = 500,
							.silent_ns = 20 * NSEC_PER_SEC,
							.entered = job->entered[i] };
}

static struct report judged(const struct job *job, size_t cnt)
{
	const struct hang_facts facts = { .records = job->records, .cnt = cnt };
	struct report report = { 0 };

	arena_init(&report.arena);
	assert_int_equal(hangdiagnosis_make(&facts, &report), 0);
	return report;
}

static void assert_finding(const struct job *job, int rank, const char *id, const char *evidence)
{
	struct report report = judged(job, RANKS);

	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].id, id);
	assert_int_equal(report.findings[0].rank_cnt, 1);
	assert_int_equal(report.findings[0].ranks[0], rank);
	assert_non_null(strstr(report.findings[0].evidence[0], evidence));
	arena_done(&report.arena);
}

static void the_end_of_a_process_is_told_by_its_kind(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	job.records[2].life = HANG_GONE;
	assert_finding(&job, 2, "PT-902", "ended without notice");
	job.records[2].exit_known = true;
	assert_finding(&job, 2, "PT-910", "exit status 0");
	job.records[2].exit_status = 3 << 8;
	assert_finding(&job, 2, "PT-902", "exit status 3");
	job.records[2].exit_status = SIGKILL;
	assert_finding(&job, 2, "PT-902", "ended by signal 9");
	job.records[2].killed_for_memory = true;
	assert_finding(&job, 2, "PT-909", "memory ran out");
}

static void stopped_and_traced_processes_differ(void **state)
{
	struct job job;

	(void)state;
	job_make(&job);
	job.records[1].process = 't';
	job.records[1].says = "held by process 77";
	assert_finding(&job, 1, "PT-911", "held by process 77");
	job.records[1].process = 'T';
	assert_finding(&job, 1, "PT-107", "stopped (state T)");
}

static void what_stacks_show_of_the_accused_names_the_finding(void **state)
{
	static const struct {
		uint32_t shown;
		const char *id;
	} rows[] = { { HANG_LOCK, "PT-912" },
		     { HANG_LOOP, "PT-913" },
		     { HANG_GPU, "PT-914" },
		     { HANG_IN_KERNEL, "PT-903" },
		     { 0, "PT-907" } };
	struct job job;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		job_make(&job);
		job.records[3].stack = "train.py(1): main\ntrain.py(7): update";
		job.records[3].shown = rows[i].shown;
		job.records[3].says = "as was seen";
		job.records[0].shown =
			rows[i].shown & ~(uint32_t)HANG_IN_KERNEL; /* a victim's is none */
		assert_finding(&job, 3, rows[i].id, "as was seen");
	}
}

/* A rank in a checkpoint is no hang for five minutes; then it is one, with its function. */
static void what_may_take_long_is_a_hang_later(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	job.records[0].stack = "train.py(1): main\ntorch/serialization.py(8): save";
	report = judged(&job, RANKS);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.finding_cnt, 0);
	assert_non_null(strstr(report.reason, "rank 0 saves or loads a checkpoint since 20 s"));
	arena_done(&report.arena);
	job.records[0].silent_ns = HANG_PAUSE_NS;
	assert_finding(&job, 0, "PT-907", "torch/serialization.py(8): save");
	/* One that is stopped meanwhile is no pause. */
	job.records[0].silent_ns = 20 * NSEC_PER_SEC;
	job.records[0].process = 'T';
	assert_finding(&job, 0, "PT-107", "stopped");
}

static void ranks_that_are_all_at_work_do_not_hang(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	for (int i = 0; i < RANKS; i++) {
		job.records[i].stack = "train.py(1): main";
		job.records[i].leaf = "";
		job.records[i].shown = HANG_MOVES;
	}
	report = judged(&job, RANKS);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	arena_done(&report.arena);
	job.records[1].shown = 0;
	report = judged(&job, RANKS);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	arena_done(&report.arena);
}

static void a_launcher_that_died_counts_where_no_rank_is_accused(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	for (int i = 0; i < RANKS; i++)
		job.records[i].launcher_gone = true;
	report = judged(&job, RANKS);
	assert_string_equal(report.findings[0].id, "PT-916");
	assert_int_equal(report.findings[0].rank_cnt, RANKS);
	arena_done(&report.arena);
	job.records[3].process = 'T';
	assert_finding(&job, 3, "PT-107", "stopped");
}

static void ranks_that_look_alike_are_told_with_the_lowest_number(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	for (int i = 0; i < RANKS; i++) {
		job.entered[i][0] = (struct hang_entered){ .group = i < 2 ? "a" : "b",
							   .name = "all_reduce",
							   .number = i < 2 ? 7 : 6,
							   .members = "",
							   .caller = "",
							   .last_finished = -1 };
		job.records[i].entered_cnt = 1;
	}
	report = judged(&job, RANKS);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_non_null(strstr(report.reason, "all_reduce number 6 of group b, on rank 2"));
	assert_int_equal(report.note_cnt, RANKS);
	arena_done(&report.arena);
}

/* Half of the ranks are one step behind: no minority is accused, but the reason names the rank furthest back. */
static void the_furthest_back_is_told_if_no_minority_is(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	job.records[0].step = job.records[1].step = 498;
	job.records[0].stack = job.records[1].stack = WAITS;
	report = judged(&job, RANKS);
	assert_int_equal(report.verdict, VERDICT_STUCK);
	assert_non_null(strstr(report.reason, "rank 0 and others are furthest back, at step 498"));
	arena_done(&report.arena);
}

/* --- meetings --- */

static struct hang_entered open_until(int64_t last_finished, int64_t number)
{
	return (struct hang_entered){ .group = "g",
				      .name = "all_reduce",
				      .number = number,
				      .members = "",
				      .caller = "",
				      .last_finished = last_finished };
}

/* The definition, by all pairs: a peer finished what this member has entered and not finished. */
static bool is_unfinished(const struct job *job, size_t i)
{
	for (size_t k = 0; k < RANKS; k++) {
		const struct hang_entered *mine = &job->entered[i][0], *other = &job->entered[k][0];

		for (int64_t n = mine->last_finished + 1; n <= mine->number; n++)
			if (other->last_finished >= n)
				return true;
	}
	return false;
}

static void unfinished_members_are_those_of_the_definition(void **state)
{
	uint64_t random = 7;
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct meetings meetings;
		struct arena arena;
		struct job job;

		job_make(&job);
		arena_init(&arena);
		for (size_t i = 0; i < RANKS; i++) {
			const int64_t finished = 5 + (int64_t)test_below(&random, 3);

			job.entered[i][0] =
				open_until(finished, finished + (int64_t)test_below(&random, 3));
			job.records[i].entered_cnt = 1;
		}
		assert_int_equal(meetings_find(job.records, RANKS, &arena, &meetings), 0);
		for (size_t i = 0; i < RANKS; i++) {
			assert_int_equal(meetings.unfinished[i], is_unfinished(&job, i));
			found += meetings.unfinished[i];
		}
		arena_done(&arena);
	}
	assert_true(found > 500 && found < 2000 * RANKS - 500);
}

static void a_member_with_nothing_open_is_before_the_first_open_one(void **state)
{
	struct arena arena;
	struct job job;

	(void)state;
	job_make(&job);
	arena_init(&arena);
	for (size_t i = 0; i < RANKS; i++) {
		job.entered[i][0] = i == 2 ? open_until(-1, -1) : open_until(40, 44);
		job.entered[i][0].ended = i == 2;
		job.records[i].entered_cnt = 1;
	}
	assert_int_equal(meetings_number(job.records, RANKS, &arena), 0);
	assert_int_equal(job.records[2].entered[0].number, 40);
	assert_int_equal(job.entered[2][0].number, -1); /* the caller's is as it was */
	assert_finding(&job, 2, "PT-906", "in no collective");
	arena_done(&arena);
}

/* Its peer in the batch is not known, so it is not told from a rank that waits. */
static void a_rank_in_a_batch_of_transfers_is_not_behind(void **state)
{
	struct report report;
	struct job job;

	(void)state;
	job_make(&job);
	for (size_t i = 0; i < RANKS; i++) {
		job.entered[i][0] = open_until(4, i == 2 ? 4 : 5);
		job.entered[i][0].ended = i == 2;
		job.records[i].entered_cnt = 1;
	}
	assert_finding(&job, 2, "PT-906", "in no collective");
	job.entered[2][1] = (struct hang_entered){ .group = "pipe",
						   .name = "coalesced",
						   .open_name = "coalesced",
						   .members = "",
						   .p2p = true,
						   .number = 9,
						   .open = 9,
						   .last_finished = 8 };
	job.records[2].entered_cnt = 2;
	report = judged(&job, RANKS);
	assert_int_equal(report.finding_cnt, 0);
	arena_done(&report.arena);
}

static void allocations_that_fail_are_told(void **state)
{
	struct report report;
	int error = -ENOMEM;
	struct job job;

	(void)state;
	job_make(&job);
	job.records[2].life = HANG_GONE;
	for (size_t i = 0; i < RANKS; i++) {
		job.entered[i][0] = open_until(4, 5);
		job.records[i].entered_cnt = 1;
	}
	for (long n = 0; error == -ENOMEM && n < 1000; n++) {
		const struct hang_facts facts = { .records = job.records, .cnt = RANKS };

		report = (struct report){ 0 };
		arena_init(&report.arena);
		allocations_left = n;
		error = hangdiagnosis_make(&facts, &report);
		allocations_left = -1;
		arena_done(&report.arena);
	}
	assert_int_equal(error, 0);
}

static void long_calls_are_known_by_file_or_name(void **state)
{
	(void)state;
	assert_non_null(longcalls_find("a.py(1): main\nb.py(2): save_checkpoint\nio.py(3): write"));
	assert_non_null(longcalls_find("torch/_dynamo/eval_frame.py(1): f"));
	assert_non_null(longcalls_find("a.py(1): Evaluate"));
	assert_null(
		longcalls_find("checkpoint.py(1): main")); /* a file of the user's of that name */
	assert_null(longcalls_find("a.py(1): train\ntorch/optim/sgd.py(1): step"));
	assert_null(longcalls_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_process_is_told_by_its_kind),
		cmocka_unit_test(stopped_and_traced_processes_differ),
		cmocka_unit_test(what_stacks_show_of_the_accused_names_the_finding),
		cmocka_unit_test(what_may_take_long_is_a_hang_later),
		cmocka_unit_test(ranks_that_are_all_at_work_do_not_hang),
		cmocka_unit_test(a_launcher_that_died_counts_where_no_rank_is_accused),
		cmocka_unit_test(ranks_that_look_alike_are_told_with_the_lowest_number),
		cmocka_unit_test(the_furthest_back_is_told_if_no_minority_is),
		cmocka_unit_test(unfinished_members_are_those_of_the_definition),
		cmocka_unit_test(a_member_with_nothing_open_is_before_the_first_open_one),
		cmocka_unit_test(a_rank_in_a_batch_of_transfers_is_not_behind),
		cmocka_unit_test(allocations_that_fail_are_told),
		cmocka_unit_test(long_calls_are_known_by_file_or_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
