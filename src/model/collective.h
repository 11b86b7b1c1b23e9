/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the names of collectives: PyTorch's, NCCL's and those of other backends. */
#pragma once

#include "base/base.h"

#define COLLECTIVE_WORD_MAX 48

/* Operation, backend and type of a recorded collective. */
struct collective_words {
	char operation[COLLECTIVE_WORD_MAX]; /* "all_reduce" */
	char backend[COLLECTIVE_WORD_MAX];   /* "gloo", "nccl", "torch-nccl"; "unknown" */
	char dtype[COLLECTIVE_WORD_MAX];     /* "float32", "other"; "unknown" */
	bool launch; /* its record ends when it is queued on the GPU, not when it is done */
};

/*
 * name: the record's, "gloo:all_reduce" from torch or "ncclAllReduce" from NCCL; collective:
 * "allreduce" or ""; dtype: "ncclFloat32" or "".
 */
void collective_words(const char *name, const char *collective, const char *dtype,
		      struct collective_words *ret);

/*
 * Bytes that each of n ranks moves per byte of payload; 0: unknown. Payload is the larger of a
 * rank's input and output.
 * Source: NVIDIA/nccl-tests doc/PERFORMANCE.md.
 */
double collective_bus_factor(const char *operation, uint32_t n);

/* Whether the operation is point to point: its two ends have their own sequence numbers. */
bool collective_is_pair(const char *operation);

/* Whether no rank can end the operation before all ranks have begun it. */
bool collective_is_mutual(const char *operation);
