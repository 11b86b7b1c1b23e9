/* SPDX-License-Identifier: Apache-2.0 */
/* What tests call of the doubles of cuBLAS and cuBLASLt: the real names and parameters. */
#pragma once

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
CUBLAS_EXPORT int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
			       const void *a, int a_type, int a_ld, const void *b, int b_type,
			       int b_ld, const void *beta, void *c, int c_type, int c_ld,
			       int compute, int algorithm);
CUBLAS_EXPORT int cublasGemmEx_64(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k,
				  const void *alpha, const void *a, int a_type, int64_t a_ld,
				  const void *b, int b_type, int64_t b_ld, const void *beta,
				  void *c, int c_type, int64_t c_ld, int compute, int algorithm);
CUBLAS_EXPORT int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k,
					     const void *alpha, const void *a, int a_type, int a_ld,
					     long long a_stride, const void *b, int b_type,
					     int b_ld, long long b_stride, const void *beta,
					     void *c, int c_type, int c_ld, long long c_stride,
					     int batch, int compute, int algorithm);
CUBLAS_EXPORT int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k,
				 const float *alpha, const float *a, int a_ld, const float *b,
				 int b_ld, const float *beta, float *c, int c_ld);
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
