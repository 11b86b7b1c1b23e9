/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of a collective say of it: PyTorch's, NCCL's, those of other backends. */
#pragma once

#include "base/base.h"

#define COLLECTIVE_WORD_MAX 48

/* What a record of a collective is. */
struct collective_words {
	char operation[COLLECTIVE_WORD_MAX]; /* "all_reduce" */
	char backend[COLLECTIVE_WORD_MAX];   /* "gloo", "nccl", "torch-nccl"; "unknown" */
	char dtype[COLLECTIVE_WORD_MAX];     /* "float32", "other"; "unknown" */
	bool launch; /* its record ends when it is in a GPU's queue, not when it is done */
};

/*
 * name: of the record, "gloo:all_reduce" by torch or "ncclAllReduce" by NCCL itself; collective:
 * "allreduce" or ""; dtype: "ncclFloat32" or "".
 */
void collective_words(const char *name, const char *collective, const char *dtype,
		      struct collective_words *ret);

/*
 * Bytes that a rank has to move for one byte of payload, of n ranks; 0: unknown. Payload is the
 * larger one of a rank's input and output.
 * Source: NVIDIA/nccl-tests doc/PERFORMANCE.md.
 */
double collective_bus_factor(const char *operation, uint32_t n);

/* Point to point: its two ends have numbers of their own. */
bool collective_is_pair(const char *operation);

/* Nobody can end before all have begun. */
bool collective_is_mutual(const char *operation);
