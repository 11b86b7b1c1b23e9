/* SPDX-License-Identifier: Apache-2.0 */
#include "base/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void assert_plain(const char *name, const char *expected)
{
	struct str text = { 0 };

	assert_int_equal(demangle_plain(name, &text), expected != NULL);
	if (expected != NULL)
		assert_string_equal(str_borrow(&text), expected);
	str_done(&text);
}

static void assert_full(const char *name, const char *expected)
{
	struct str text = { 0 };

	demangle(name, &text);
	assert_string_equal(str_borrow(&text), expected);
	str_done(&text);
}

static void the_name_of_a_function_is_taken_out(_unused_ void **state)
{
	assert_plain(
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL");
	assert_plain("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_add",
		     "at::native::vectorized_elementwise_kernel");
	assert_plain("_ZN2at6native19_GLOBAL__N__d1f2b3c6gatherEv",
		     "at::native::(anonymous namespace)::gather");
	assert_plain("_ZSt4swapIiEvRT_S1_", "std::swap");
}

static void a_name_that_is_not_mangled_is_unchanged(_unused_ void **state)
{
	assert_plain("sm80_xmma_gemm", NULL);
	assert_plain("_Z", NULL);
	assert_plain("_Z99short", NULL);
	assert_plain("_Z99999999999999999999x", NULL);
	assert_full("sm80_xmma_gemm", "sm80_xmma_gemm");
	assert_full("_Z", "_Z");
	assert_full("", "");
}

/* The name is present with and without the system's C++ library. */
static void parameters_are_there_when_they_are_known(_unused_ void **state)
{
	struct str text = { 0 };

	demangle("_Z6kernelIfEvPT_", &text);
	assert_non_null(strstr(str_borrow(&text), "kernel"));
	assert_null(strstr(str_borrow(&text), "_Z"));
	str_done(&text);
}

/* Each level is a pair of the previous one: 2^60 names if expanded. */
static void an_exponential_name_stays_short(_unused_ void **state)
{
	struct str name = { 0 }, text = { 0 };

	str_append(&name, "_Z1fSt4pairIiiE");
	for (int i = 0; i < 60; i++)
		str_printf(&name, "St4pairIS%c_S%c_E", '0' + i % 10, '0' + i % 10);
	demangle(str_borrow(&name), &text);
	assert_string_equal(str_borrow(&text), "f");
	str_done(&name);
	str_done(&text);
}

/* Like a CUTLASS GEMM, whose last arguments are half_t or bfloat16_t; truncated or not. */
static void kernels_of_one_template_stay_apart(_unused_ void **state)
{
	static const char *const ends[] = { "NS_6half_tESJ_EEvv", "NS_10bfloat16_tESJ_EEvv",
					    "~0123", "~0124" };
	static const char begin[] = "cutlass::device_kernel<~";
	struct str texts[ARRAY_SIZE(ends)] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct str name = { 0 };

		str_append(&name, "_ZN7cutlass13device_kernelI");
		for (int part = 0; part < 40; part++)
			str_append(&name, "NS_1CILi1EEES1_");
		str_append(&name, ends[i]);
		demangle(str_borrow(&name), &texts[i]);
		str_done(&name);
		assert_memory_equal(str_borrow(&texts[i]), begin, sizeof(begin) - 1);
		assert_int_equal(texts[i].len, sizeof(begin) - 1 + 17);
		for (size_t other = 0; other < i; other++)
			assert_string_not_equal(str_borrow(&texts[i]), str_borrow(&texts[other]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		str_done(&texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_of_a_function_is_taken_out),
		cmocka_unit_test(a_name_that_is_not_mangled_is_unchanged),
		cmocka_unit_test(parameters_are_there_when_they_are_known),
		cmocka_unit_test(an_exponential_name_stays_short),
		cmocka_unit_test(kernels_of_one_template_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
