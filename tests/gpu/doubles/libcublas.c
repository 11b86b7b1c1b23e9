/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS, as far as its functions' names and parameters go: a multiplication is work in the
 * handle's queue, at 100 TFLOPS. As the real one does, some functions call cuBLASLt's.
 * SONAME libcublas.so.12.
 */
#include "cublas_double.h"
#include "gpu_double.h"

#include <stddef.h>

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

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
		 const void *a, int a_type, int a_ld, const void *b, int b_type, int b_ld,
		 const void *beta, void *c, int c_type, int c_ld, int compute, int algorithm)
{
	struct double_layout a_layout = { a_type, m, k, 1 }, b_layout = { b_type, k, n, 1 };
	struct double_layout c_layout = { c_type, m, n, 1 };
	int transposed = 0;

	if (ta != 0 || tb != 1 || a_ld != 11 || b_ld != 12 || c_ld != 13 || compute != 68 ||
	    algorithm != 99)
		return 7; /* an argument got lost on its way */
	return cublasLtMatmul(handle, &transposed, alpha, a, &a_layout, b, &b_layout, beta, c,
			      &c_layout, c, &c_layout, NULL, NULL, 0,
			      ((struct handle *)handle)->queue);
}

int cublasGemmEx_64(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k,
		    const void *alpha, const void *a, int a_type, int64_t a_ld, const void *b,
		    int b_type, int64_t b_ld, const void *beta, void *c, int c_type, int64_t c_ld,
		    int compute, int algorithm)
{
	(void)(ta + tb + a_type + b_type + c_type + algorithm);
	(void)alpha, (void)a, (void)a_ld, (void)b, (void)b_ld, (void)beta, (void)c, (void)c_ld;
	return compute == 68 ? multiply(handle, m, n, k, 1) : 7;
}

int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
			       const void *a, int a_type, int a_ld, long long a_stride,
			       const void *b, int b_type, int b_ld, long long b_stride,
			       const void *beta, void *c, int c_type, int c_ld, long long c_stride,
			       int batch, int compute, int algorithm)
{
	(void)(ta + tb + a_type + a_ld + b_type + b_ld + c_type + c_ld);
	(void)alpha, (void)a, (void)b, (void)beta, (void)c;
	if (a_stride != 101 || b_stride != 102 || c_stride != 103 || compute != 68 ||
	    algorithm != 99)
		return 7;
	return multiply(handle, m, n, k, batch);
}

int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
		   const float *a, int a_ld, const float *b, int b_ld, const float *beta, float *c,
		   int c_ld)
{
	(void)(ta + tb + a_ld + b_ld);
	(void)alpha, (void)a, (void)b, (void)beta, (void)c;
	return c_ld == 13 ? multiply(handle, m, n, k, 1) : 7;
}
