/* SPDX-License-Identifier: Apache-2.0 */
#include "model/usage/gpucall.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void a_call_is_known_by_its_prefix_whatever_its_version(void **state)
{
	(void)state;
	assert_int_equal(gpucall_of("cudaLaunchKernelExC_v11060"), GPUCALL_LAUNCH);
	assert_int_equal(gpucall_of("cuMemcpyHtoDAsync_v2"), GPUCALL_COPY);
	assert_int_equal(gpucall_of("hipStreamSynchronize"), GPUCALL_WAIT);
	assert_int_equal(gpucall_of("cudaEventQuery"), GPUCALL_OTHER);
	assert_int_equal(gpucall_of(""), GPUCALL_OTHER);
}

static void pinned_memory_is_not_memory_of_the_device(void **state)
{
	(void)state;
	assert_int_equal(gpucall_of("cudaMallocHost"), GPUCALL_PIN);
	assert_int_equal(gpucall_of("cudaMallocAsync"), GPUCALL_ALLOCATE);
	assert_int_equal(gpucall_of("cudaFreeHost"), GPUCALL_PIN);
	assert_int_equal(gpucall_of("cudaFree"), GPUCALL_ALLOCATE);
	assert_int_equal(gpucall_of("hipHostMalloc"), GPUCALL_PIN);
	assert_int_equal(gpucall_of("hipMalloc"), GPUCALL_ALLOCATE);
	assert_true(gpucall_is_memory("cuMemFreeHost"));
	assert_false(gpucall_is_memory("cudaMemcpyAsync"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_known_by_its_prefix_whatever_its_version),
		cmocka_unit_test(pinned_memory_is_not_memory_of_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
