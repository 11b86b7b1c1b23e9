/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libcuda that can be initialized, or not: double_cuda_status. */
#define EXPORT __attribute__((visibility("default")))

EXPORT extern int double_cuda_status;
EXPORT int cuInit(unsigned flags);

int double_cuda_status;

int cuInit(unsigned flags)
{
	(void)flags;
	return double_cuda_status;
}
