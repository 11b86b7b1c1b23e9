/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of each kind of cuBLAS's functions (agent/calls/cublas_abi.h), with arguments of which
 * each is known again: the double looks at all but the sizes M, N and K. Of groups there are two,
 * one with these sizes, one with twice these.
 */
#pragma once

#include <stdint.h>

#define GEMM_AT(number) ((void *)(uintptr_t)(number))
#define GEMM_OPS(first, second) ((void *)(int[]){ first, second })
#define GEMM_LIST(type, first, second) ((const type[]){ first, second })
#define GEMM_TYPE 14
#define GEMM_BATCH 6
#define GEMM_GROUPS 2
#define GEMM_GROUP_MATRICES 7 /* 3 and 4 */
#define GEMM_GROUP_FLOP(m, n, k) (2.0 * (m) * (n) * (k) * (3 + 8 * 4))

#define TYPED_PASS(handle, whole, m, n, k)                                              \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), 11, GEMM_AT(3), 12, GEMM_AT(4), \
	 GEMM_AT(5), 13)
#define STRIDED_PASS(handle, whole, m, n, k)                                                      \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), 11, 101, GEMM_AT(3), 12, 102, GEMM_AT(4), \
	 GEMM_AT(5), 13, 103, GEMM_BATCH)
#define BATCHED_PASS(handle, whole, m, n, k)                                            \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), 11, GEMM_AT(3), 12, GEMM_AT(4), \
	 GEMM_AT(5), 13, GEMM_BATCH)
#define TYPES_PASS(handle, whole, m, n, k)                                                \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), GEMM_TYPE, 11, GEMM_AT(3), 2, 12, \
	 GEMM_AT(4), GEMM_AT(5), 0, 13)
#define EX_PASS(handle, whole, m, n, k)                                                   \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), GEMM_TYPE, 11, GEMM_AT(3), 2, 12, \
	 GEMM_AT(4), GEMM_AT(5), 0, 13, 68, 99)
#define STRIDED_EX_PASS(handle, whole, m, n, k)                                                \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), GEMM_TYPE, 11, 101, GEMM_AT(3), 2, 12, \
	 102, GEMM_AT(4), GEMM_AT(5), 0, 13, 103, GEMM_BATCH, 68, 99)
#define BATCHED_EX_PASS(handle, whole, m, n, k)                                           \
	(handle, 1, 2, m, n, k, GEMM_AT(1), GEMM_AT(2), GEMM_TYPE, 11, GEMM_AT(3), 2, 12, \
	 GEMM_AT(4), GEMM_AT(5), 0, 13, GEMM_BATCH, 68, 99)
#define GROUPED_PASS(handle, whole, m, n, k)                                                     \
	(handle, GEMM_OPS(1, 0), GEMM_OPS(2, 1), GEMM_LIST(whole, m, 2 * (m)),                   \
	 GEMM_LIST(whole, n, 2 * (n)), GEMM_LIST(whole, k, 2 * (k)), GEMM_AT(1), GEMM_AT(2),     \
	 GEMM_LIST(whole, 11, 21), GEMM_AT(3), GEMM_LIST(whole, 12, 22), GEMM_AT(4), GEMM_AT(5), \
	 GEMM_LIST(whole, 13, 23), GEMM_GROUPS, GEMM_LIST(whole, 3, 4))
#define GROUPED_EX_PASS(handle, whole, m, n, k)                                                    \
	(handle, GEMM_OPS(1, 0), GEMM_OPS(2, 1), GEMM_LIST(whole, m, 2 * (m)),                     \
	 GEMM_LIST(whole, n, 2 * (n)), GEMM_LIST(whole, k, 2 * (k)), GEMM_AT(1), GEMM_AT(2),       \
	 GEMM_TYPE, GEMM_LIST(whole, 11, 21), GEMM_AT(3), 2, GEMM_LIST(whole, 12, 22), GEMM_AT(4), \
	 GEMM_AT(5), 0, GEMM_LIST(whole, 13, 23), GEMM_GROUPS, GEMM_LIST(whole, 3, 4), 68)
