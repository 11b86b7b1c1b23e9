/* SPDX-License-Identifier: Apache-2.0 */
/* What tests call of the doubles of cuBLAS and cuBLASLt: the real names and parameters. */
#pragma once

#include "agent/calls/cublas_abi.h"
#include "cublas_calls.h"

#include <stddef.h>
#include <stdint.h>

#define CUBLAS_EXPORT __attribute__((visibility("default")))

#define DOUBLE_GEMM_NS(m, n, k, batch) \
	((int64_t)(2.0 * (double)(m) * (double)(n) * (double)(k) * (double)(batch)*1e-5))

/* What the double takes for a layout of cuBLASLt. */
struct double_layout {
	int type;
	int64_t rows, cols;
	int batch;
};

CUBLAS_EXPORT int cublasCreate_v2(void **ret);
CUBLAS_EXPORT int cublasSetStream_v2(void *handle, void *queue);
CUBLAS_EXPORT int cublasGetStream_v2(void *handle, void **ret);

#define DOUBLE_GEMM(function, kind, type)                  \
	CUBLAS_EXPORT int function kind##_PARAMETERS(int); \
	CUBLAS_EXPORT int function##_64 kind##_PARAMETERS(int64_t);
CUBLAS_GEMMS(DOUBLE_GEMM)
#undef DOUBLE_GEMM

CUBLAS_EXPORT int cublasLtMatmul(void *handle, const void *description, const void *alpha,
				 const void *a, const void *a_layout, const void *b,
				 const void *b_layout, const void *beta, const void *c,
				 const void *c_layout, void *d, const void *d_layout,
				 const void *algorithm, void *workspace, size_t workspace_bytes,
				 void *queue);
CUBLAS_EXPORT int cublasLtMatrixLayoutGetAttribute(const void *layout, int which, void *ret,
						   size_t size, size_t *written);
CUBLAS_EXPORT int cublasLtMatmulDescGetAttribute(const void *description, int which, void *ret,
						 size_t size, size_t *written);
