/* SPDX-License-Identifier: Apache-2.0 */
/* What differ_codes.c and differ_exact.c share: points after eq. 8, in two precisions. */
#pragma once

#include "center/columns/differ_codes.h"
#include "model/code16.h"

enum { DIM_BETA, DIM_MU, DIM_SIGMA, DIM_CNT };

/*
 * Single precision is off by less than 2^-20 in a sum of three differences of numbers
 * of 0..1: what is further from delta than that is decided.
 */
#define DIFFER_NEAR ((float)DIFFER_DELTA - 0x1p-20f)
#define DIFFER_FAR ((float)DIFFER_DELTA + 0x1p-20f)

/* The loops over pairs, compiled for several generations of processors. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DIFFER_WIDE __attribute__((optimize("O3"), target_clones("default", "avx2", "avx512f")))
#else
#define DIFFER_WIDE
#endif

/* Eq. 8: numbers by code. */
struct differ_scale {
	const uint16_t *codes[DIM_CNT];
	double top[DIM_CNT];
	/* By the shift of a code (code16.h): what it has too much, and what its rest counts. */
	int32_t bias[64];
	float unit[DIM_CNT][64]; /* 0 for an absent number */
};

void differ_scale_init(struct differ_scale *scale, const struct differ_codes *points);

/* A number after eq. 8, in single precision; 0 for an absent one. */
static inline float differ_at(const struct differ_scale *s, int dim, uint16_t code)
{
	unsigned int shift = code >> CODE16_MANTISSA;

	return (float)((int32_t)code - s->bias[shift]) * s->unit[dim][shift];
}

/* Bit per dimension that a row has. */
static inline unsigned int differ_dims(const struct differ_scale *s, size_t row)
{
	return 1u << DIM_BETA | (unsigned int)(s->codes[DIM_MU][row] != CODE16_ABSENT) << DIM_MU |
	       (unsigned int)(s->codes[DIM_SIGMA][row] != CODE16_ABSENT) << DIM_SIGMA;
}

/* Eq. 10 as differ.c has it, of two points' codes in the dimensions they share. */
bool differ_codes_far(const struct differ_scale *scale, const uint16_t a[DIM_CNT],
		      const uint16_t b[DIM_CNT]);

/*
 * Eq. 11: the threshold of deltas far[cnt] / of and absent_cnt times far_absent / of.
 * Returns 0 or -ENOMEM. O(cnt + of).
 */
_must_check_ int differ_limit(const uint32_t *far, size_t cnt, size_t absent_cnt,
			      struct differ_found *found);
