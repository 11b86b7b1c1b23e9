/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are of one job and one window. */
#include "cmd/jobfiles/jobfiles.h"

#include "cmd/jobfiles/ranknames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define FILES_MAX 8
#define SECOND_NS ((int64_t)NSEC_PER_SEC)

static struct fingerprint fps[FILES_MAX];
static struct fp_iteration steps[FILES_MAX];
static struct fingerprint *given[FILES_MAX];
static size_t given_cnt;
static struct jobfiles found;

/* A file of one second with one step; each rank is a process of its own. */
static struct fingerprint *add(int rank, int world_size, int64_t begin_s, int64_t step)
{
	struct fingerprint *fp = &fps[given_cnt];

	steps[given_cnt] = (struct fp_iteration){ .number = step, .dur_ns = SECOND_NS };
	*fp = (struct fingerprint){
		.host = "node",
		.source = "job/trace.json",
		.job_id = "",
		.rank = rank,
		.world_size = world_size,
		.pid = 100 + rank,
		/* No two processes begin at the same nanosecond. */
		.window_start_wall_ns = begin_s * SECOND_NS + rank,
		.window_ns = SECOND_NS,
		.iterations = &steps[given_cnt],
		.iteration_cnt = 1,
		.iterations_by = ITERATIONS_ANNOTATION,
		.event_cnt = 10,
	};
	given[given_cnt++] = fp;
	return fp;
}

static int begin(void **state)
{
	(void)state;
	given_cnt = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	jobfiles_done(&found);
	return 0;
}

static void find(void)
{
	assert_int_equal(jobfiles_find(given, given_cnt, &found), 0);
	assert_int_equal(found.cnt, given_cnt);
}

static void files_of_distinct_ranks_are_one_window(void **state)
{
	(void)state;
	for (int rank = 3; rank >= 0; rank--)
		(void)add(rank, 4, 1000, 5);
	find();
	assert_int_equal(found.kind, JOBFILES_ONE);
	assert_int_equal(found.used_cnt, 4);
	for (int rank = 0; rank < 4; rank++)
		assert_int_equal(found.files[rank].rank, rank);
}

static void a_copy_is_used_once(void **state)
{
	(void)state;
	for (int rank = 0; rank < 3; rank++)
		(void)add(rank, 3, 1000, 5);
	add(1, 3, 1000, 5)->source = "job/again.json";
	find();
	assert_int_equal(found.kind, JOBFILES_ONE);
	assert_int_equal(found.used_cnt, 3);
	assert_non_null(found.files[3].copy_of);
	assert_int_equal(found.files[3].rank, 1);
}

static void of_several_windows_the_latest_that_most_ranks_have_is_chosen(void **state)
{
	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		(void)add(rank, 2, 1000, 5);
		(void)add(rank, 2, 1005, 25);
	}
	(void)add(0, 2, 1010, 45); /* rank 1 has ended */
	find();
	assert_int_equal(found.kind, JOBFILES_WINDOWS);
	assert_int_equal(found.set_cnt, 3);
	assert_int_equal(found.chosen, 1);
	for (size_t i = 0; i < found.used_cnt; i++) {
		if (found.files[i].set == found.chosen)
			assert_int_equal(found.files[i].fp->iterations[0].number, 25);
	}
}

static void ranks_of_jobs_of_different_sizes_are_mixed(void **state)
{
	(void)state;
	(void)add(0, 4, 1000, 5);
	(void)add(1, 4, 1000, 5);
	(void)add(2, 8, 1000, 5);
	(void)add(3, 8, 1000, 5);
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
	assert_int_equal(found.set_cnt, 2);
}

static void a_rank_of_two_processes_is_of_two_runs(void **state)
{
	(void)state;
	for (int run = 0; run < 2; run++) {
		for (int rank = 0; rank < 2; rank++)
			add(rank, 2, 1000 + 3600 * run, 5)->pid += 1000 * run;
	}
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
	assert_int_equal(found.set_cnt, 2);
}

static void runs_an_hour_apart_are_mixed_even_if_no_rank_is_twice(void **state)
{
	(void)state;
	(void)add(0, 2, 1000, 5);
	(void)add(1, 2, 4600, 5);
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
}

#define COLLECTIVES 24

/* A rank of the collectives that end at end_ns, in a group that its trace does not name. */
static void add_meeting(int rank, int64_t begin_s, const int64_t *end_ns,
			struct fp_collective *collectives)
{
	struct fingerprint *fp = add(rank, 4, begin_s, 5);

	for (int i = 0; i < COLLECTIVES; i++) {
		/* Each learns some microseconds later that the collective has ended. */
		int64_t late_ns = (rank * 31 + i * 17) % 5 * 1000;

		collectives[i] = (struct fp_collective){ .start_ns = end_ns[i] - 100000 + late_ns,
							 .dur_ns = 100000,
							 .seq = -1 };
	}
	fp->collectives = collectives;
	fp->collective_cnt = COLLECTIVES;
}

/* Ranks 0 and 3, and 1 and 2 meet. jitter_ns: by which iterations of four collectives differ. */
static void add_hosts(int64_t jitter_ns, struct fp_collective (*collectives)[COLLECTIVES])
{
	static const int shares[] = { 0, 1, 1, 0 };
	int64_t end_ns[2][COLLECTIVES];
	uint32_t dice = 7;

	for (int share = 0; share < 2; share++) {
		int64_t at_ns = 1000000;

		for (int i = 0; i < COLLECTIVES; i++) {
			dice = dice * 1664525 + 1013904223;
			at_ns += 3000000 * (1 + i % 4) + (int64_t)(dice >> 16) * jitter_ns / 65536;
			end_ns[share][i] = at_ns;
		}
	}
	for (int rank = 0; rank < 4; rank++)
		add_meeting(rank, rank < 2 ? 1000 : 1100, end_ns[shares[rank]], collectives[rank]);
}

static void ranks_that_met_are_one_job_though_clocks_differ_and_groups_have_no_names(void **state)
{
	struct fp_collective collectives[4][COLLECTIVES];

	(void)state;
	add_hosts(2000000, collectives);
	find();
	assert_int_equal(found.kind, JOBFILES_ONE);
	assert_true(found.clocks_off);
}

static void one_rhythm_does_not_make_two_runs_one_job(void **state)
{
	struct fp_collective collectives[4][COLLECTIVES];

	(void)state;
	add_hosts(0, collectives);
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
}

/* Four ranks of two hosts whose clocks are 100 s apart, with three steps; those of host b take more ms. */
static void add_alike(double more_ms, const char *second_host)
{
	static struct fp_iteration three[4][3];

	for (int rank = 0; rank < 4; rank++) {
		struct fingerprint *fp = add(rank, 4, rank < 2 ? 1000 : 1100, 5);

		for (int i = 0; i < 3; i++)
			three[rank][i] = (struct fp_iteration){
				.number = 5 + i,
				.dur_ns = 350000000 + rank * 1000000 +
					  (rank < 2 ? 0 : (int64_t)(more_ms * 1e6)),
			};
		fp->iterations = three[rank];
		fp->iteration_cnt = 3;
		fp->host = rank < 2 ? "a" : second_host;
	}
}

static void hosts_that_nothing_relates_are_one_job_if_steps_and_lengths_fit(void **state)
{
	(void)state;
	add_alike(5, "b");
	find();
	assert_int_equal(found.kind, JOBFILES_ONE);
	assert_true(found.only_alike);
}

static void hosts_whose_iterations_differ_are_of_two_runs(void **state)
{
	(void)state;
	add_alike(30, "b");
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
}

/* One host has one clock. */
static void files_of_one_host_a_minute_apart_are_of_two_runs(void **state)
{
	(void)state;
	add_alike(0, "a");
	find();
	assert_int_equal(found.kind, JOBFILES_MIXED);
}

static void hosts_are_not_one_job_if_a_rank_is_missing_or_steps_differ(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		given_cnt = 0;
		add_alike(0, "b");
		if (how == 0)
			given_cnt--;
		for (int i = 0; i < 3 && how == 1; i++)
			given[3]->iterations[i].number = given[2]->iterations[i].number += 2;
		if (how == 2)
			given[3]->window_start_wall_ns = given[2]->window_start_wall_ns +=
				2000 * SECOND_NS;
		jobfiles_done(&found);
		find();
		assert_int_equal(found.kind, JOBFILES_MIXED);
	}
}

static void the_rank_is_that_of_the_trace_else_of_the_file_else_of_a_folder(void **state)
{
	struct fingerprint *fp = add(2, 4, 1000, 5);

	(void)state;
	fp->source = "rank7/rank6.json";
	assert_int_equal(jobfiles_rank(fp), 2);
	fp->rank = -1;
	assert_int_equal(jobfiles_rank(fp), 6);
	fp->source = "rank7/trace.json";
	assert_int_equal(jobfiles_rank(fp), 7);
	fp->source = "job/trace.json";
	assert_int_equal(jobfiles_rank(fp), -1);
	/* A process that is alone in its world is always rank 0 of it. */
	fp->rank = 0;
	fp->world_size = 1;
	fp->source = "job/rank3.json";
	assert_int_equal(jobfiles_rank(fp), 3);
}

static void names_of_files_say_ranks(void **state)
{
	static const struct {
		const char *path;
		int rank;
	} cases[] = {
		{ "rank3.json", 3 },
		{ "/a/rank_12.pt.trace.json.gz", 12 },
		{ "iteration_5/rank0_trace.json", 0 },
		{ "Worker-4.json", 4 },
		{ "frank3.json", 3 },
		{ "rank.json", -1 },
		{ "rank99999999999.json", -1 },
		{ "rank4/trace.json", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(ranknames_of_file(cases[i].path), cases[i].rank);
	assert_int_equal(ranknames_of_folder("job/rank4/trace.json"), 4);
	assert_int_equal(ranknames_of_folder("rank2/rank4/trace.json"), 4);
	assert_int_equal(ranknames_of_folder("worker4/trace.json"), -1);
	assert_int_equal(ranknames_of_folder("rank4.json"), -1);
}

static void names_of_the_handler_of_torch_say_the_process(void **state)
{
	struct ranknames_process process =
		ranknames_process_of("logs/gpu_host_4711.1700000000123456789.pt.trace.json.gz");

	(void)state;
	assert_int_equal(process.host_len, strlen("gpu_host"));
	assert_memory_equal(process.host, "gpu_host", process.host_len);
	assert_int_equal(process.pid, 4711);
	assert_int_equal(ranknames_process_of("rank_3.json").host_len, 0);
	assert_int_equal(ranknames_process_of("a_12.3.json").host_len, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_of_distinct_ranks_are_one_window),
		TEST(a_copy_is_used_once),
		TEST(of_several_windows_the_latest_that_most_ranks_have_is_chosen),
		TEST(ranks_of_jobs_of_different_sizes_are_mixed),
		TEST(a_rank_of_two_processes_is_of_two_runs),
		TEST(runs_an_hour_apart_are_mixed_even_if_no_rank_is_twice),
		TEST(ranks_that_met_are_one_job_though_clocks_differ_and_groups_have_no_names),
		TEST(one_rhythm_does_not_make_two_runs_one_job),
		TEST(hosts_that_nothing_relates_are_one_job_if_steps_and_lengths_fit),
		TEST(hosts_whose_iterations_differ_are_of_two_runs),
		TEST(files_of_one_host_a_minute_apart_are_of_two_runs),
		TEST(hosts_are_not_one_job_if_a_rank_is_missing_or_steps_differ),
		TEST(the_rank_is_that_of_the_trace_else_of_the_file_else_of_a_folder),
		TEST(names_of_files_say_ranks),
		TEST(names_of_the_handler_of_torch_say_the_process),
	};

	return cmocka_run_group_tests_name("jobfiles", tests, NULL, NULL);
}
