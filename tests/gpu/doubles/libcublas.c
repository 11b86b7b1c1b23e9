/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS, as far as its functions' names and parameters go: a multiplication is work in the
 * handle's queue, at 100 TFLOPS. As the real one does, some functions call cuBLASLt's.
 * SONAME libcublas.so.12.
 */
#include "cublas_double.h"
#include "gpu_double.h"

#include <stddef.h>

#define LOST 7 /* CUBLAS_STATUS_INVALID_VALUE: an argument got lost on its way */

struct handle {
	void *queue;
};

static struct handle handle0;

int cublasCreate_v2(void **ret)
{
	*ret = &handle0;
	return 0;
}

int cublasSetStream_v2(void *handle, void *queue)
{
	((struct handle *)handle)->queue = queue;
	return 0;
}

int cublasGetStream_v2(void *handle, void **ret)
{
	*ret = ((struct handle *)handle)->queue;
	return 0;
}

static int multiply(void *handle, int64_t m, int64_t n, int64_t k, int64_t batch)
{
	double_gpu_work(((struct handle *)handle)->queue, DOUBLE_GEMM_NS(m, n, k, batch));
	return 0;
}

static int multiply_by_lt(void *handle, int64_t m, int64_t n, int64_t k)
{
	struct double_layout a = { GEMM_TYPE, m, k, 1 }, b = { 2, k, n, 1 }, c = { 0, m, n, 1 };
	int transposed = 0;

	return cublasLtMatmul(handle, &transposed, NULL, NULL, &a, NULL, &b, NULL, NULL, &c, NULL,
			      &c, NULL, NULL, 0, ((struct handle *)handle)->queue);
}

/* --- what must have arrived, by kind --- */

#define IS_AT(pointer, number) ((const void *)(pointer) == GEMM_AT(number))
#define POINTERS_OK (IS_AT(alpha, 1) && IS_AT(a, 2) && IS_AT(b, 3) && IS_AT(beta, 4) && IS_AT(c, 5))
#define HEAD_OK (POINTERS_OK && ta == 1 && tb == 2 && a_ld == 11 && b_ld == 12 && c_ld == 13)
#define TYPES_OK (a_type == GEMM_TYPE && b_type == 2 && c_type == 0)
#define STRIDES_OK (a_stride == 101 && b_stride == 102 && c_stride == 103)
#define EX_OK (TYPES_OK && compute == 68 && algorithm == 99)
#define ARE(list, first, second) ((list)[0] == (first) && (list)[1] == (second))
#define GROUPS_OK                                                                  \
	(POINTERS_OK && groups == GEMM_GROUPS && ARE(ta, 1, 0) && ARE(tb, 2, 1) && \
	 ARE(a_ld, 11, 21) && ARE(b_ld, 12, 22) && ARE(c_ld, 13, 23) && ARE(matrices, 3, 4))

#define ONE(batch) multiply(handle, m, n, k, batch)
#define ALL_GROUPS                                         \
	(multiply(handle, m[0], n[0], k[0], matrices[0]) | \
	 multiply(handle, m[1], n[1], k[1], matrices[1]))

#define TYPED_DOES HEAD_OK ? ONE(1) : LOST
#define STRIDED_DOES HEAD_OK &&STRIDES_OK ? ONE(batch) : LOST
#define BATCHED_DOES HEAD_OK ? ONE(batch) : LOST
#define TYPES_DOES HEAD_OK &&TYPES_OK ? ONE(1) : LOST
#define EX_DOES HEAD_OK &&EX_OK ? multiply_by_lt(handle, m, n, k) : LOST
#define STRIDED_EX_DOES HEAD_OK &&STRIDES_OK &&EX_OK ? ONE(batch) : LOST
#define BATCHED_EX_DOES HEAD_OK &&EX_OK ? ONE(batch) : LOST
#define GROUPED_DOES GROUPS_OK ? ALL_GROUPS : LOST
#define GROUPED_EX_DOES GROUPS_OK &&TYPES_OK &&compute == 68 ? ALL_GROUPS : LOST

#define GEMM(function, kind, type)                   \
	int function kind##_PARAMETERS(int)          \
	{                                            \
		return kind##_DOES;                  \
	}                                            \
	int function##_64 kind##_PARAMETERS(int64_t) \
	{                                            \
		return kind##_DOES;                  \
	}
CUBLAS_GEMMS(GEMM)
