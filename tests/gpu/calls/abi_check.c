/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpucalls_cuda.c takes for CUDA's interface against CUDA's own headers, where they are on
 * the include path: numbers, offsets, and that each function takes what it hands on.
 */
#include <stddef.h>

#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cublas_v2.h>

_Static_assert(CUBLASLT_MATRIX_LAYOUT_TYPE == 0 && CUBLASLT_MATRIX_LAYOUT_ROWS == 2 &&
		       CUBLASLT_MATRIX_LAYOUT_COLS == 3 &&
		       CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5 && CUBLASLT_MATMUL_DESC_TRANSA == 3,
	       "attributes");
_Static_assert(CUBLAS_OP_N == 0 && CUBLAS_STATUS_NOT_INITIALIZED == 1, "numbers");
_Static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 && CUDA_C_32F == 4 &&
		       CUDA_C_64F == 5 && CUDA_C_16F == 6 && CUDA_R_16BF == 14 && CUDA_C_16BF == 15,
	       "types");
_Static_assert(sizeof(cudaDataType) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
		       sizeof(cublasComputeType_t) == sizeof(int) &&
		       sizeof(cublasGemmAlgo_t) == sizeof(int),
	       "enums are ints");

/* Compiled, never run: a parameter more or less, or a pointer for a number, is an error. */
struct arguments {
	void *handle, *c, **pointers;
	const void *a;
	int whole;
	long long stride;
	int64_t wide;
};

#define SIZES(x, type) x->type, x->type, x->type
#define HEAD(x, type) x->handle, x->whole, x->whole, SIZES(x, type), x->a
#define POINTERS(x) ((const void *const *)x->pointers)

static inline void blas_calls(const struct arguments *x)
{
	(void)cublasGemmEx(HEAD(x, whole), x->a, x->whole, x->whole, x->a, x->whole, x->whole, x->a,
			   x->c, x->whole, x->whole, x->whole, x->whole);
	(void)cublasGemmStridedBatchedEx(HEAD(x, whole), x->a, x->whole, x->whole, x->stride, x->a,
					 x->whole, x->whole, x->stride, x->a, x->c, x->whole,
					 x->whole, x->stride, x->whole, x->whole, x->whole);
	(void)cublasGemmBatchedEx(HEAD(x, whole), POINTERS(x), x->whole, x->whole, POINTERS(x),
				  x->whole, x->whole, x->a, x->pointers, x->whole, x->whole,
				  x->whole, x->whole, x->whole);
	(void)cublasSgemm_v2(HEAD(x, whole), x->a, x->whole, x->a, x->whole, x->a, x->c, x->whole);
	(void)cublasSgemmStridedBatched(HEAD(x, whole), x->a, x->whole, x->stride, x->a, x->whole,
					x->stride, x->a, x->c, x->whole, x->stride, x->whole);
	(void)cublasLtMatmul(x->handle, x->c, x->a, x->a, x->c, x->a, x->c, x->a, x->a, x->c, x->c,
			     x->c, x->a, x->c, sizeof(size_t), x->c);
}

#if CUBLAS_VERSION >= 120000
static inline void wide_calls(const struct arguments *x)
{
	(void)cublasGemmEx_64(HEAD(x, wide), x->a, x->whole, x->wide, x->a, x->whole, x->wide, x->a,
			      x->c, x->whole, x->wide, x->whole, x->whole);
	(void)cublasGemmStridedBatchedEx_64(HEAD(x, wide), x->a, x->whole, x->wide, x->stride, x->a,
					    x->whole, x->wide, x->stride, x->a, x->c, x->whole,
					    x->wide, x->stride, x->wide, x->whole, x->whole);
}
#endif
#endif

#if __has_include(<cuda.h>)
#include <cuda.h>
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "the queue of a launch");
_Static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == 2 && CU_STREAM_CAPTURE_STATUS_NONE == 0 &&
		       CUDA_ERROR_NOT_READY == 600 && CUDA_ERROR_NOT_FOUND == 500,
	       "numbers");
#endif

#if __has_include(<driver_types.h>)
#include <driver_types.h>
_Static_assert(offsetof(cudaLaunchConfig_t, stream) == 32 &&
		       offsetof(cudaLaunchConfig_t, dynamicSmemBytes) == 24,
	       "the queue of a launch");
#endif

int main(void)
{
	return 0; /* that it compiles is the test */
}
