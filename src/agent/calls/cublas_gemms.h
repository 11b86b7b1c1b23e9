/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS's functions that multiply matrices, by their symbols. Each has another one, from CUDA 12
 * on, with "_64" behind its name and sizes of 64 bits. A kind has one list of parameters
 * (cublas_abi.h).
 * Source: cublas_api.h of CUDA 11 to 13; those of groups are of 12.5 and later.
 */
#pragma once

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
