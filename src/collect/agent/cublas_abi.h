/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS's functions that multiply matrices: their symbols, parameters in order, and those again
 * as arguments to hand on. A kind of function has one list of parameters; whole is the type of
 * its sizes: int, and in the function of the same name with "_64", from CUDA 12 on, int64_t.
 * Source: cublas_api.h of CUDA 11 to 13; enums are ints, the handle is a pointer. Those of groups
 * are of 12.5 and later.
 */
#pragma once

#include <stdint.h>

/* cudaDataType */
enum cublas_type {
	TYPE_R_32F = 0,
	TYPE_R_64F = 1,
	TYPE_R_16F = 2,
	TYPE_C_32F = 4,
	TYPE_C_64F = 5,
};

/*
 * X(function, kind, type of the first matrix's elements). cublas_v2.h calls those with "_v2"
 * without it, and has those of half precision for C++ alone.
 */
#define CUBLAS_HALF_GEMMS(X)                              \
	X(cublasHgemm, TYPED, TYPE_R_16F)                 \
	X(cublasHgemmStridedBatched, STRIDED, TYPE_R_16F) \
	X(cublasHgemmBatched, BATCHED, TYPE_R_16F)
#define CUBLAS_FULL_GEMMS(X)                                \
	X(cublasSgemm_v2, TYPED, TYPE_R_32F)                \
	X(cublasDgemm_v2, TYPED, TYPE_R_64F)                \
	X(cublasCgemm_v2, TYPED, TYPE_C_32F)                \
	X(cublasZgemm_v2, TYPED, TYPE_C_64F)                \
	X(cublasCgemm3m, TYPED, TYPE_C_32F)                 \
	X(cublasZgemm3m, TYPED, TYPE_C_64F)                 \
	X(cublasSgemmStridedBatched, STRIDED, TYPE_R_32F)   \
	X(cublasDgemmStridedBatched, STRIDED, TYPE_R_64F)   \
	X(cublasCgemmStridedBatched, STRIDED, TYPE_C_32F)   \
	X(cublasZgemmStridedBatched, STRIDED, TYPE_C_64F)   \
	X(cublasCgemm3mStridedBatched, STRIDED, TYPE_C_32F) \
	X(cublasSgemmBatched, BATCHED, TYPE_R_32F)          \
	X(cublasDgemmBatched, BATCHED, TYPE_R_64F)          \
	X(cublasCgemmBatched, BATCHED, TYPE_C_32F)          \
	X(cublasZgemmBatched, BATCHED, TYPE_C_64F)          \
	X(cublasCgemm3mBatched, BATCHED, TYPE_C_32F)        \
	X(cublasSgemmEx, TYPES, a_type)                     \
	X(cublasCgemmEx, TYPES, a_type)                     \
	X(cublasCgemm3mEx, TYPES, a_type)                   \
	X(cublasGemmEx, EX, a_type)                         \
	X(cublasGemmStridedBatchedEx, STRIDED_EX, a_type)   \
	X(cublasGemmBatchedEx, BATCHED_EX, a_type)          \
	X(cublasSgemmGroupedBatched, GROUPED, TYPE_R_32F)   \
	X(cublasDgemmGroupedBatched, GROUPED, TYPE_R_64F)   \
	X(cublasGemmGroupedBatchedEx, GROUPED_EX, a_type)
#define CUBLAS_GEMMS(X)      \
	CUBLAS_HALF_GEMMS(X) \
	CUBLAS_FULL_GEMMS(X)

#define TYPED_PARAMETERS(whole)                                                           \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,      \
	 const void *a, whole a_ld, const void *b, whole b_ld, const void *beta, void *c, \
	 whole c_ld)
#define TYPED_ARGUMENTS (handle, ta, tb, m, n, k, alpha, a, a_ld, b, b_ld, beta, c, c_ld)

#define STRIDED_PARAMETERS(whole)                                                       \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,    \
	 const void *a, whole a_ld, long long a_stride, const void *b, whole b_ld,      \
	 long long b_stride, const void *beta, void *c, whole c_ld, long long c_stride, \
	 whole batch)
#define STRIDED_ARGUMENTS                                                                     \
	(handle, ta, tb, m, n, k, alpha, a, a_ld, a_stride, b, b_ld, b_stride, beta, c, c_ld, \
	 c_stride, batch)

#define BATCHED_PARAMETERS(whole)                                                              \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,           \
	 const void *const *a, whole a_ld, const void *const *b, whole b_ld, const void *beta, \
	 void *const *c, whole c_ld, whole batch)
#define BATCHED_ARGUMENTS (handle, ta, tb, m, n, k, alpha, a, a_ld, b, b_ld, beta, c, c_ld, batch)

/* The types of the matrices are arguments. */
#define TYPES_PARAMETERS(whole)                                                        \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,   \
	 const void *a, int a_type, whole a_ld, const void *b, int b_type, whole b_ld, \
	 const void *beta, void *c, int c_type, whole c_ld)
#define TYPES_ARGUMENTS \
	(handle, ta, tb, m, n, k, alpha, a, a_type, a_ld, b, b_type, b_ld, beta, c, c_type, c_ld)

/* And that of the computation. */
#define EX_PARAMETERS(whole)                                                           \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,   \
	 const void *a, int a_type, whole a_ld, const void *b, int b_type, whole b_ld, \
	 const void *beta, void *c, int c_type, whole c_ld, int compute, int algorithm)
#define EX_ARGUMENTS                                                                              \
	(handle, ta, tb, m, n, k, alpha, a, a_type, a_ld, b, b_type, b_ld, beta, c, c_type, c_ld, \
	 compute, algorithm)

#define STRIDED_EX_PARAMETERS(whole)                                                           \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,           \
	 const void *a, int a_type, whole a_ld, long long a_stride, const void *b, int b_type, \
	 whole b_ld, long long b_stride, const void *beta, void *c, int c_type, whole c_ld,    \
	 long long c_stride, whole batch, int compute, int algorithm)
#define STRIDED_EX_ARGUMENTS                                                                   \
	(handle, ta, tb, m, n, k, alpha, a, a_type, a_ld, a_stride, b, b_type, b_ld, b_stride, \
	 beta, c, c_type, c_ld, c_stride, batch, compute, algorithm)

#define BATCHED_EX_PARAMETERS(whole)                                                        \
	(void *handle, int ta, int tb, whole m, whole n, whole k, const void *alpha,        \
	 const void *const *a, int a_type, whole a_ld, const void *const *b, int b_type,    \
	 whole b_ld, const void *beta, void *const *c, int c_type, whole c_ld, whole batch, \
	 int compute, int algorithm)
#define BATCHED_EX_ARGUMENTS                                                                      \
	(handle, ta, tb, m, n, k, alpha, a, a_type, a_ld, b, b_type, b_ld, beta, c, c_type, c_ld, \
	 batch, compute, algorithm)

/* Groups of matrices, each with sizes of its own; all but alpha to c is in the host's memory. */
#define GROUPED_PARAMETERS(whole)                                                        \
	(void *handle, const int ta[], const int tb[], const whole m[], const whole n[], \
	 const whole k[], const void *alpha, const void *const *a, const whole a_ld[],   \
	 const void *const *b, const whole b_ld[], const void *beta, void *const *c,     \
	 const whole c_ld[], whole groups, const whole matrices[])
#define GROUPED_ARGUMENTS \
	(handle, ta, tb, m, n, k, alpha, a, a_ld, b, b_ld, beta, c, c_ld, groups, matrices)

#define GROUPED_EX_PARAMETERS(whole)                                                               \
	(void *handle, const int ta[], const int tb[], const whole m[], const whole n[],           \
	 const whole k[], const void *alpha, const void *const *a, int a_type, const whole a_ld[], \
	 const void *const *b, int b_type, const whole b_ld[], const void *beta, void *const *c,   \
	 int c_type, const whole c_ld[], whole groups, const whole matrices[], int compute)
#define GROUPED_EX_ARGUMENTS                                                                      \
	(handle, ta, tb, m, n, k, alpha, a, a_type, a_ld, b, b_type, b_ld, beta, c, c_type, c_ld, \
	 groups, matrices, compute)
