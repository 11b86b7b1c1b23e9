/* SPDX-License-Identifier: Apache-2.0 */
#include "model/collective.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void many_names_become_few(void **state)
{
	static const struct {
		const char *name, *collective, *dtype;
		struct collective_words words;
	} cases[] = {
		{ "gloo:all_reduce", "", "", { "all_reduce", "gloo", "unknown", false } },
		{ "gloo:_allgather_base", "", "", { "all_gather", "gloo", "unknown", false } },
		{ "nccl:all_reduce",
		  "allreduce_coalesced",
		  "",
		  { "all_reduce", "torch-nccl", "unknown", true } },
		{ "ncclReduceScatter",
		  "reduce_scatter",
		  "ncclBfloat16",
		  { "reduce_scatter", "nccl", "bfloat16", true } },
		{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
		  "",
		  "",
		  { "all_reduce", "nccl", "unknown", true } },
		{ "ncclAlltoAll", "", "custom", { "all_to_all", "nccl", "other", true } },
		{ "mpi:frobnicate", "", "", { "frobnicate", "mpi", "unknown", false } },
		{ "", "", "", { "unknown", "unknown", "unknown", false } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct collective_words words;

		collective_words(cases[i].name, cases[i].collective, cases[i].dtype, &words);
		assert_string_equal(words.operation, cases[i].words.operation);
		assert_string_equal(words.backend, cases[i].words.backend);
		assert_string_equal(words.dtype, cases[i].words.dtype);
		assert_int_equal(words.launch, cases[i].words.launch);
	}
}

static void bus_factors_are_those_of_nccl_tests(void **state)
{
	(void)state;
	assert_true(collective_bus_factor("all_reduce", 4) == 1.5);
	assert_true(collective_bus_factor("all_gather", 4) == 0.75);
	assert_true(collective_bus_factor("broadcast", 4) == 1);
	assert_true(collective_bus_factor("barrier", 4) == 0);
	assert_true(collective_bus_factor("all_reduce", 1) == 0);
	assert_true(collective_bus_factor("frobnicate", 8) == 0);
}

static void a_collective_that_waits_for_all_ranks_is_mutual(void **state)
{
	(void)state;
	assert_true(collective_is_mutual("all_reduce") && collective_is_mutual("barrier"));
	assert_false(collective_is_mutual("broadcast") || collective_is_mutual("frobnicate"));
	assert_true(collective_is_pair("send_recv") && !collective_is_pair("all_reduce"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_names_become_few),
		cmocka_unit_test(bus_factors_are_those_of_nccl_tests),
		cmocka_unit_test(a_collective_that_waits_for_all_ranks_is_mutual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
