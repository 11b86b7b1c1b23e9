/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char *const *environment; /* NAME=VALUE ..., NULL */

static const char *find(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
		if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=')
			return environment[i] + len + 1;
	}
	return NULL;
}

struct example {
	const char *argv[16], *environment[12];
	unsigned members;
	int index;
	const char *address, *job, *launcher;
	unsigned port;
};

static const struct example examples[] = {
	{ { "python", "train.py", "--nnodes=2" }, { "RANK=x" }, 1, 0, "", "", "", 0 },
	{ { "torchrun", "--nproc-per-node", "4", "train.py" }, { NULL }, 1, 0, "", "", "", 0 },
	{ { "/opt/venv/bin/torchrun", "--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1",
	    "--master-port=29600", "train.py", "--nnodes=9" },
	  { NULL },
	  2,
	  1,
	  "10.0.0.1",
	  "10.0.0.1-29600",
	  "torchrun",
	  29600 + 413 },
	{ { "python", "-m", "torch.distributed.run", "--nnodes", "1:4", "--rdzv_endpoint",
	    "head:1234", "--rdzv_id", "exp7", "-m", "train" },
	  { NULL },
	  4,
	  -1,
	  "head",
	  "exp7",
	  "torchrun",
	  1234 + 413 },
	{ { "torchrun", "--rdzv-endpoint=[fe80::1]:29400", "train.py" },
	  { "PET_NNODES=3", "PET_NODE_RANK=2" },
	  3,
	  2,
	  "fe80::1",
	  "fe80::1-29400",
	  "torchrun",
	  29400 + 413 },
	{ { "torchrun", "--standalone", "--nnodes=2", "t.py" }, { NULL }, 1, 0, "", "", "", 0 },
	{ { "torchrun", "--nproc_per_node=8", "--nnodes=2", "train.py" },
	  { "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=77", "SLURM_STEP_ID=3",
	    "SLURM_STEP_NODELIST=gpu[03-04]" },
	  2,
	  1,
	  "gpu03",
	  "slurm-77.3",
	  "torchrun",
	  29913 },
	{ { "torchrun", "--nproc_per_node=8", "train.py" },
	  { "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2" },
	  1,
	  0,
	  "",
	  "",
	  "",
	  0 },
	{ { "python", "train.py" }, /* in a batch script */
	  { "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_JOB_ID=77", "SLURM_NNODES=2" },
	  1,
	  0,
	  "",
	  "",
	  "",
	  0 },
	{ { "python", "train.py" },
	  { "SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=8", "SLURM_JOB_ID=77", "MASTER_ADDR=gpu03",
	    "MASTER_PORT=12345" },
	  8,
	  5,
	  "gpu03",
	  "slurm-77.0",
	  "Slurm",
	  12345 + 413 },
	{ { "python", "train.py" },
	  { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4", "MASTER_ADDR=a" },
	  4,
	  0,
	  "a",
	  "a-29500",
	  "Open MPI",
	  29913 },
	{ { "python", "train.py" },
	  { "RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=b", "MASTER_PORT=65500" },
	  4,
	  3,
	  "b",
	  "b-65500",
	  "environment",
	  65500 - 413 },
	{ { "accelerate", "launch", "--num_machines", "2", "--machine_rank", "0",
	    "--main_process_ip", "10.1.1.1", "--main_process_port", "29500", "train.py" },
	  { NULL },
	  2,
	  0,
	  "10.1.1.1",
	  "10.1.1.1-29500",
	  "accelerate",
	  29913 },
	{ { "torchrun", "--nnodes=2", "train.py" },
	  { "JOB_COMPLETION_INDEX=1", "MASTER_ADDR=set-0.set", "JOBSET_NAME=set" },
	  2,
	  1,
	  "set-0.set",
	  "set",
	  "torchrun",
	  29913 },
};

static void the_place_of_each_launcher(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *e = &examples[i];
		struct member member;

		environment = e->environment;
		member_find((char *const *)(uintptr_t)e->argv, find, &member);
		print_message("%s %s\n", e->argv[0], e->argv[1]);
		assert_int_equal(member.members, e->members);
		assert_int_equal(member.index, e->index);
		if (e->members == 1)
			continue;
		assert_string_equal(member.address, e->address);
		assert_string_equal(member.job, e->job);
		assert_string_equal(member.launcher, e->launcher);
		assert_int_equal(member.port, e->port);
	}
}

static void the_first_host_of_a_list(void **state)
{
	static const char *const lists[][2] = {
		{ "gpu[03-04,7],login", "gpu03" },
		{ "gpu7", "gpu7" },
		{ "a,b", "a" },
		{ "rack1-[1,5]", "rack1-1" },
		{ "x[10-12]", "x10" },
		{ "", "" },
		{ "x[", "x" },
	};
	char host[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		member_first_host(lists[i][0], host, sizeof(host));
		assert_string_equal(host, lists[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_place_of_each_launcher),
		cmocka_unit_test(the_first_host_of_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
