/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix multiplication timed by a worker: decodes the record after FLIGHT_TIMED and computes its
 * work.
 */
#pragma once

#include "format/shared/recorder.h"

struct matmul {
	uint32_t m, n, k; /* 0: of groups, each with its own shape */
	uint32_t groups;  /* 0: all matrices have one shape */
	uint32_t matrices;
	uint16_t type; /* CUDA's type number */
	double flop;
};

/*
 * One multiplication and one addition per pair of elements; complex numbers need four of each.
 * type: CUDA's number.
 */
static inline double matmul_flop(double m, double n, double k, double matrices, uint16_t type)
{
	bool is_complex = type == 4 || type == 5 || type == 6 || type == 15;

	return 2 * m * n * k * matrices * (is_complex ? 4 : 1);
}

/* False: the record describes no multiplication. */
_must_check_ bool matmul_of(const struct ring_record *record, struct matmul *ret);

/* "float32", "bfloat16"; "other" for rare types. */
const char *matmul_type_name(uint16_t type);
