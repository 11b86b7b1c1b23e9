/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of each kind of cuBLAS's functions that multiply matrices (cublas_gemms.h) the parameters in
 * order, and those again as arguments to hand on. whole is the type of sizes: int, and in the
 * function of the same name with "_64" int64_t.
 * Source: cublas_api.h of CUDA 11 to 13; enums are ints, the handle is a pointer.
 */
#pragma once

#include "agent/calls/cublas_gemms.h"

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
