/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/shortnames.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void kernels_have_kinds(void **state)
{
	(void)state;
	assert_string_equal(kernel_kind("sm90_xmma_gemm_bf16bf16_bf16f32"), "matmul");
	assert_string_equal(kernel_kind("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "collective");
	assert_string_equal(kernel_kind("void flash::flash_fwd_kernel<...>"), "attention");
	assert_string_equal(kernel_kind("Cijk_Ailk_Bljk_HHS_BH"), "matmul");
	assert_string_equal(kernel_kind("at::native::vectorized_elementwise_kernel"),
			    "elementwise");
	assert_string_equal(kernel_kind(""), "other");
	assert_string_equal(memop_kind("Memcpy HtoD (Pinned -> Device)"), "HtoD");
	assert_string_equal(memop_kind("Memset (Device)"), "set");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_have_kinds),
	};

	return cmocka_run_group_tests_name("shortnames", tests, NULL, NULL);
}
