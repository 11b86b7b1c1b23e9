/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/jobprocs.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define ENVIRON(...) parse((const char[]){ __VA_ARGS__ }, sizeof((const char[]){ __VA_ARGS__ }))

static struct jobproc parse(const char *text, size_t len)
{
	struct jobproc proc = { 0 };

	jobprocs_parse_environ(text, len, &proc);
	return proc;
}

static void variables_of_torchrun_count_before_those_of_a_scheduler(void **state)
{
	struct jobproc proc = ENVIRON("SLURM_PROCID=3\0RANK=1\0WORLD_SIZE=8\0MASTER_PORT=29500");
	struct jobproc peer = ENVIRON("MASTER_PORT=29500\0RANK=2\0WORLD_SIZE=8");
	struct jobproc other = ENVIRON("MASTER_PORT=29501\0RANK=2\0WORLD_SIZE=8");

	(void)state;
	assert_int_equal(proc.rank, 1);
	assert_int_equal(proc.world_size, 8);
	assert_false(proc.weak);
	assert_true(proc.job != 0 && proc.job == peer.job);
	assert_true(proc.job != other.job);
}

static void an_environment_without_a_rank_has_no_job(void **state)
{
	struct jobproc proc = ENVIRON("PATH=/bin\0XRANK=1\0RANK=\0MASTER_PORT=1");

	(void)state;
	assert_int_equal(proc.rank, -1);
	assert_true(proc.job == 0);
	proc = ENVIRON("RANK=-1\0LANG=C");
	assert_int_equal(proc.rank, -1);
	proc = ENVIRON("RANK=99999999999999999999\0LANG=C");
	assert_int_equal(proc.rank, -1);
}

static void a_scheduler_numbers_weakly(void **state)
{
	struct jobproc proc = ENVIRON("SLURM_PROCID=3\0SLURM_STEP_NUM_TASKS=4\0SLURM_JOB_ID=7");

	(void)state;
	assert_int_equal(proc.rank, 3);
	assert_int_equal(proc.world_size, 4);
	assert_true(proc.weak);
}

/* --- trees of processes --- */

static void add(jobproc_vec *procs, uint32_t pid, uint32_t parent, int rank, uint64_t job,
		bool python)
{
	struct jobproc proc = { .pid = pid,
				.tgid = pid,
				.parent = parent,
				.uid = 1000,
				.rank = rank,
				.world_size = rank >= 0 ? 2 : 0,
				.job = job,
				.python = python };

	(void)snprintf(proc.command, sizeof(proc.command), "program %u", pid);
	assert_int_equal(vec_push(procs, proc), 0);
}

/* torchrun 10 with ranks 20 and 30; a loader's workers, a compiler, a shell around a rank. */
static jobproc_vec torchrun(void)
{
	jobproc_vec procs = { 0 };

	add(&procs, 5, 1, -1, 0, false); /* a shell */
	add(&procs, 10, 5, -1, 0, true);
	add(&procs, 20, 10, 0, 77, true);
	add(&procs, 21, 20, 0, 77, true);  /* its loader's worker */
	add(&procs, 22, 20, 0, 77, false); /* gcc */
	add(&procs, 30, 10, 1, 77, false); /* bash -c "python train.py" */
	add(&procs, 31, 30, 1, 77, true);
	add(&procs, 32, 31, 1, 77, true);
	return procs;
}

static void check_two(const jobproc_vec *procs, uint32_t pid)
{
	struct jobranks ranks = { 0 };
	struct err err = { "" };

	assert_int_equal(jobprocs_ranks(procs, &pid, 1, &ranks, &err), 0);
	assert_int_equal(ranks.ranks.cnt, 2);
	assert_int_equal(ranks.ranks.data[0].pid, 20);
	assert_int_equal(ranks.ranks.data[1].pid, 31);
	assert_int_equal(ranks.ranks.data[1].rank, 1);
	assert_int_equal(ranks.world_size, 2);
	jobranks_done(&ranks);
}

static void launcher_rank_and_child_lead_to_the_same_ranks(void **state)
{
	static const uint32_t pids[] = { 5, 10, 20, 21, 22, 30, 31, 32 };
	jobproc_vec procs = torchrun();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		check_two(&procs, pids[i]);
	vec_done(&procs);
}

static void a_launcher_that_a_scheduler_numbered_is_no_rank(void **state)
{
	jobproc_vec procs = torchrun();
	jobprocs_pids jobs = { 0 };

	(void)state;
	procs.data[1].rank = 0;
	procs.data[1].weak = true;
	procs.data[1].job = 55;
	check_two(&procs, 10);
	assert_int_equal(jobprocs_jobs(&procs, 1000, false, &jobs), 0);
	assert_int_equal(jobs.cnt, 1);
	assert_int_equal(jobs.data[0], 20);
	vec_done(&jobs);
	vec_done(&procs);
}

static void all_lists_each_job_once_and_only_the_users(void **state)
{
	jobproc_vec procs = torchrun();
	jobprocs_pids jobs = { 0 };

	(void)state;
	add(&procs, 40, 1, -1, 0, true);
	add(&procs, 41, 40, -1, 0, true);
	procs.data[8].torch = procs.data[9].torch = true; /* a job without ranks and its child */
	procs.data[1].torch = true;			  /* torchrun loads torch, too */
	assert_int_equal(jobprocs_jobs(&procs, 1000, false, &jobs), 0);
	assert_int_equal(jobs.cnt, 2);
	assert_int_equal(jobs.data[0], 20);
	assert_int_equal(jobs.data[1], 40);
	jobs.cnt = 0;
	assert_int_equal(jobprocs_jobs(&procs, 1001, false, &jobs), 0);
	assert_int_equal(jobs.cnt, 0);
	vec_done(&jobs);
	vec_done(&procs);
}

static void a_single_process_is_rank_0(void **state)
{
	jobproc_vec procs = { 0 };
	struct jobranks ranks = { 0 };
	struct err err = { "" };
	uint32_t pid = 6;

	(void)state;
	add(&procs, 6, 1, -1, 0, false); /* nohup, a shell */
	add(&procs, 7, 6, -1, 0, true);
	add(&procs, 8, 7, -1, 0, true);
	add(&procs, 9, 7, -1, 0, true);
	assert_int_equal(jobprocs_ranks(&procs, &pid, 1, &ranks, &err), 0);
	assert_int_equal(ranks.ranks.cnt, 1);
	assert_int_equal(ranks.ranks.data[0].pid, 7);
	assert_int_equal(ranks.ranks.data[0].rank, 0);
	assert_int_equal(ranks.python_children, 2);
	jobranks_done(&ranks);
	vec_done(&procs);
}

static void several_processes_without_a_rank_are_ranks_in_their_order(void **state)
{
	static const uint32_t pids[] = { 9, 8 };
	jobproc_vec procs = { 0 };
	struct jobranks ranks = { 0 };
	struct err err = { "" };

	(void)state;
	add(&procs, 7, 1, -1, 0, true);
	add(&procs, 8, 7, -1, 0, true);
	add(&procs, 9, 7, -1, 0, true);
	assert_int_equal(jobprocs_ranks(&procs, pids, 2, &ranks, &err), 0);
	assert_int_equal(ranks.ranks.cnt, 2);
	assert_int_equal(ranks.ranks.data[0].pid, 9);
	assert_int_equal(ranks.ranks.data[1].rank, 1);
	jobranks_done(&ranks);
	vec_done(&procs);
}

static void check_error(const jobproc_vec *procs, uint32_t pid, int error, const char *part)
{
	struct jobranks ranks = { 0 };
	struct err err = { "" };

	assert_int_equal(jobprocs_ranks(procs, &pid, 1, &ranks, &err), error);
	assert_non_null(strstr(err.text, part));
	jobranks_done(&ranks);
}

static void what_cannot_be_attached_to_is_told_in_one_line(void **state)
{
	jobproc_vec procs = torchrun();

	(void)state;
	add(&procs, 50, 1, -1, 0, false);
	add(&procs, 60, 5, 0, 99, true); /* another job below the shell */
	add(&procs, 70, 1, -1, 0, true);
	procs.data[10].error = EACCES;
	procs.data[10].uid = geteuid() + 1;
	check_error(&procs, 99, -ESRCH, "there is no process 99: `ps -e` lists them");
	check_error(&procs, 50, -EINVAL, "runs no Python");
	check_error(&procs, 5, -EINVAL, "ranks of another job");
	check_error(&procs, 70, -EPERM, "process 70");
	vec_done(&procs);
}

static void processes_in_a_circle_end(void **state)
{
	jobproc_vec procs = { 0 };
	jobprocs_pids jobs = { 0 };

	(void)state;
	add(&procs, 8, 9, 0, 7, false);
	add(&procs, 9, 8, 0, 7, false);
	add(&procs, 10, 9, 0, 7, true);
	assert_int_equal(jobprocs_jobs(&procs, 1000, false, &jobs), 0);
	vec_done(&jobs);
	vec_done(&procs);
}

static void this_process_is_listed(void **state)
{
	jobproc_vec procs = { 0 };
	bool found = false;

	(void)state;
	assert_int_equal(jobprocs_list("/proc", &procs), 0);
	vec_foreach(proc, &procs)
		found = found || proc->pid == (uint32_t)getpid();
	assert_true(found);
	vec_done(&procs);
	assert_int_equal(jobprocs_list("/no/such/folder", &procs), -ENOENT);
}

static void a_failed_allocation_is_reported(void **state)
{
	jobproc_vec procs = torchrun();
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		struct jobranks ranks = { 0 };
		struct err err = { "" };
		uint32_t pid = 10;

		allocations_left = n;
		error = jobprocs_ranks(&procs, &pid, 1, &ranks, &err);
		allocations_left = -1;
		jobranks_done(&ranks);
	}
	assert_int_equal(error, 0);
	vec_done(&procs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_of_torchrun_count_before_those_of_a_scheduler),
		cmocka_unit_test(an_environment_without_a_rank_has_no_job),
		cmocka_unit_test(a_scheduler_numbers_weakly),
		cmocka_unit_test(launcher_rank_and_child_lead_to_the_same_ranks),
		cmocka_unit_test(a_launcher_that_a_scheduler_numbered_is_no_rank),
		cmocka_unit_test(all_lists_each_job_once_and_only_the_users),
		cmocka_unit_test(a_single_process_is_rank_0),
		cmocka_unit_test(several_processes_without_a_rank_are_ranks_in_their_order),
		cmocka_unit_test(what_cannot_be_attached_to_is_told_in_one_line),
		cmocka_unit_test(processes_in_a_circle_end),
		cmocka_unit_test(this_process_is_listed),
		cmocka_unit_test(a_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
