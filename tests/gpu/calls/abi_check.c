/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpucalls_cuda.c and gpucalls_nccl.c take for CUDA's and NCCL's interfaces against the
 * headers of both, where they are on the include path: numbers, offsets, and that each function
 * takes what it hands on.
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
_Static_assert(CUDA_C_32F == 4 && CUDA_C_64F == 5 && CUDA_C_16F == 6 && CUDA_C_16BF == 15,
	       "complex types");
_Static_assert(sizeof(cudaDataType) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int) &&
		       sizeof(cublasComputeType_t) == sizeof(int) &&
		       sizeof(cublasGemmAlgo_t) == sizeof(int),
	       "enums are ints");

#if CUBLAS_VERSION >= 120500 /* has them all */
#include "agent/calls/cublas_abi.h"
#include "cublas_calls.h"

_Static_assert((int)TYPE_R_16F == CUDA_R_16F && (int)TYPE_R_32F == CUDA_R_32F &&
		       (int)TYPE_R_64F == CUDA_R_64F && (int)TYPE_C_32F == CUDA_C_32F &&
		       (int)TYPE_C_64F == CUDA_C_64F,
	       "types");

/* Compiled, never run: a parameter more or less, or a pointer for a number, is an error. */
static inline void gemm_calls(cublasHandle_t handle)
{
#define COMPILES(function, kind, type)                    \
	(void)function kind##_PASS(handle, int, 1, 1, 1); \
	(void)function##_64 kind##_PASS(handle, int64_t, 1, 1, 1);
	CUBLAS_FULL_GEMMS(COMPILES)
}
#endif

static inline void lt_call(void *p, const void *c)
{
	(void)cublasLtMatmul(p, p, c, c, p, c, p, c, c, p, p, p, c, p, sizeof(size_t), p);
}
#endif

#if __has_include(<cuda.h>)
#include <cuda.h>
_Static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == 2 && CU_STREAM_CAPTURE_STATUS_NONE == 0 &&
		       CUDA_ERROR_NOT_READY == 600 && CUDA_ERROR_NOT_FOUND == 500,
	       "numbers");
#endif

#if __has_include(<cuda.h>) && __has_include(<driver_types.h>) && CUDA_VERSION >= 11080
#include <driver_types.h>
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "the queue of a launch");
_Static_assert(offsetof(cudaLaunchConfig_t, stream) == 32 &&
		       offsetof(cudaLaunchConfig_t, dynamicSmemBytes) == 24,
	       "the queue of a launch");
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
_Static_assert(ncclInternalError == 3 && sizeof(ncclResult_t) == sizeof(int) &&
		       sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int),
	       "numbers of NCCL");
/* As gpucalls_nccl.c hands them on, with int for enums. */
static inline void nccl_calls(const void *from, void *to, ncclDataType_t type, ncclRedOp_t op,
			      ncclComm_t comm, cudaStream_t queue)
{
	ncclResult_t (*reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
			       ncclComm_t, cudaStream_t) = ncclAllReduce;

	(void)reduce(from, to, 1, type, op, comm, queue);
	reduce = ncclReduceScatter;
	(void)reduce(from, to, 1, type, op, comm, queue);
	(void)ncclBroadcast(from, to, 1, type, 0, comm, queue);
	(void)ncclAllGather(from, to, 1, type, comm, queue);
	(void)ncclReduce(from, to, 1, type, op, 0, comm, queue);
	(void)ncclSend(from, 1, type, 0, comm, queue);
	(void)ncclRecv(to, 1, type, 0, comm, queue);
	(void)ncclGroupStart();
	(void)ncclGroupEnd();
}
#endif

int main(void)
{
	return 0; /* that it compiles is the test */
}
