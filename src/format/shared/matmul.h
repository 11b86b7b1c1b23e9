/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix multiplication that a worker had timed: what the record behind FLIGHT_TIMED says of
 * it, and how much work it was.
 */
#pragma once

#include "format/shared/recorder.h"

struct matmul {
	uint32_t m, n, k; /* 0: of groups, each of its own shape */
	uint32_t groups;  /* 0: all matrices have one shape */
	uint32_t matrices;
	uint16_t type; /* CUDA's number */
	double flop;
};

/*
 * A multiplication and an addition for each pair of elements; for complex numbers it is four of
 * each. type: as CUDA numbers it.
 */
static inline double matmul_flop(double m, double n, double k, double matrices, uint16_t type)
{
	bool is_complex = type == 4 || type == 5 || type == 6 || type == 15;

	return 2 * m * n * k * matrices * (is_complex ? 4 : 1);
}

/* False: the record doesn't tell of one. */
_must_check_ bool matmul_of(const struct ring_record *record, struct matmul *ret);

/* "float32", "bfloat16"; "other" for rare ones. */
const char *matmul_type_name(uint16_t type);
