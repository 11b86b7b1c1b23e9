/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/placement.h"

#include "host/process/test_tree.h"

#include <stdlib.h>

/* ';' is the NUL after each variable; "0-": unknown where they begin. */
static void each_launcher_has_variables_of_the_host(void **state _unused_)
{
	static const struct {
		const char *environment;
		int32_t rank, rank_cnt, first; /* -1: not known */
	} cases[] = {
		{ "RANK=9;LOCAL_RANK=1;LOCAL_WORLD_SIZE=8;WORLD_SIZE=16;", 9, 8, 8 },
		{ "A=B;RANK=3;LOCAL_WORLD_SIZE=4;LOCAL_RANK=3;", 3, 4, 0 },
		{ "RANK=3;LOCAL_WORLD_SIZE=4;LOCAL_RANK=3;", 2, 0, -1 }, /* another's */
		{ "RANK=3;LOCAL_WORLD_SIZE=4;", 3, 0, -1 },
		{ "RANK=3;LOCAL_WORLD_SIZE=4;LOCAL_RANK=4;", 3, 0, -1 },
		{ "RANK=1;LOCAL_WORLD_SIZE=4;LOCAL_RANK=2;", 1, 0, -1 },
		{ "RANK=1;LOCAL_RANK=0;LOCAL_WORLD_SIZE=0;", 1, 0, -1 },
		{ "RANK=1;LOCAL_RANK=0;LOCAL_WORLD_SIZE=4x;", 1, 0, -1 },
		{ "RANK=1;LOCAL_RANK=0;LOCAL_WORLD_SIZE=99999999999999999999;", 1, 0, -1 },
		{ "XRANK=1;RANKS=1;RANK=1;LOCAL_RANK=0;LOCAL_WORLD_SIZE=2;", 1, 2, 1 },
		{ "SLURM_PROCID=5;SLURM_NODEID=1;SLURM_STEP_TASKS_PER_NODE=4(x2),2;", 5, 4, -1 },
		{ "SLURM_PROCID=9;SLURM_NODEID=2;SLURM_STEP_TASKS_PER_NODE=4(x2),2;", 9, 2, -1 },
		{ "SLURM_PROCID=9;SLURM_NODEID=3;SLURM_STEP_TASKS_PER_NODE=4(x2),2;", 9, 0, -1 },
		{ "SLURM_PROCID=0;SLURM_NODEID=0;SLURM_STEP_TASKS_PER_NODE=4(y2);", 0, 0, -1 },
		{ "SLURM_PROCID=0;SLURM_NODEID=0;SLURM_STEP_TASKS_PER_NODE=4(x0),2;", 0, 2, -1 },
		{ "SLURM_PROCID=0;SLURM_NODEID=0;SLURM_STEP_TASKS_PER_NODE=4(x2)2;", 0, 0, -1 },
		{ "SLURM_PROCID=0;SLURM_NODEID=0;SLURM_STEP_TASKS_PER_NODE=4(x2;", 0, 0, -1 },
		{ "SLURM_PROCID=0;SLURM_STEP_TASKS_PER_NODE=4;", 0, 0, -1 },
		{ "RANK=5;SLURM_PROCID=5;SLURM_NODEID=0;SLURM_STEP_TASKS_PER_NODE=6;", 5, 6, -1 },
		{ "OMPI_COMM_WORLD_RANK=5;OMPI_COMM_WORLD_LOCAL_SIZE=3;", 5, 3, -1 },
		{ "PMI_RANK=5;MPI_LOCALNRANKS=2;", 5, 2, -1 },
		{ "PMI_RANK=5;", 5, 0, -1 },
		{ "RANK=-1;LOCAL_RANK=0;LOCAL_WORLD_SIZE=2;", -1, 0, -1 },
		{ "PMI_RANK=5;MPI_LOCALNRANKS=2", 5, 0, -1 }, /* perhaps cut off */
		{ "", 0, 0, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t size = strlen(cases[i].environment);
		char *copy = malloc(size + 1); /* what is read beyond is seen by a sanitizer */
		struct placement ret;

		assert_non_null(copy);
		for (size_t k = 0; k < size; k++)
			copy[k] = cases[i].environment[k] == ';' ? '\0' : cases[i].environment[k];
		copy = realloc(copy, MAX(size, (size_t)1));
		assert_non_null(copy);
		ret = placement_parse(copy, size, cases[i].rank);
		assert_int_equal(ret.rank_cnt, cases[i].rank_cnt);
		assert_int_equal(ret.has_first ? ret.first : -1, cases[i].first);
		free(copy);
	}
}

static void a_process_is_asked(void **state)
{
	static const char environment[] = "RANK=9\0LOCAL_RANK=1\0LOCAL_WORLD_SIZE=8";
	const char *root = *state;

	write_bytes(root, "proc/71/environ", environment, sizeof(environment));
	assert_int_equal(placement_read(root, 71, 9).rank_cnt, 8);
	assert_int_equal(placement_read(root, 72, 9).rank_cnt, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launcher_has_variables_of_the_host),
		cmocka_unit_test_setup_teardown(a_process_is_asked, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
