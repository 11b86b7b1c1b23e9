/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number in 16 bits: 11 significant bits and a shift, as in a floating-point number without sign.
 * Counts below 2048 are exact; larger ones (to 2^62) and durations are off by at most 1/2048 of
 * themselves. Codes sort like their numbers, so medians and thresholds can be computed on codes.
 *
 * Fractions are coded as multiples of 2^-30: 0 and 1 are exact, a fraction from 2^-19 up is off by
 * at most 1/2048 of itself, a smaller one by 2^-31.
 */
#pragma once

#include "base/base.h"

#include <math.h>

#define CODE16_ABSENT UINT16_MAX
#define CODE16_MANTISSA 10u		     /* bits after the leading one */
#define CODE16_EXACT (2u << CODE16_MANTISSA) /* smaller numbers are their own codes */
#define CODE16_LARGEST (1ULL << 62)
#define CODE16_TOP 54272u /* the code of CODE16_LARGEST */
#define CODE16_ONE 21504u /* the code of the fraction 1 */
#define CODE16_FRACTION 0x1p30

/* Larger numbers are clamped to CODE16_LARGEST. */
static inline uint16_t code16_of_count(uint64_t count)
{
	unsigned shift;

	if (count < CODE16_EXACT)
		return (uint16_t)count;
	count = MIN(count, (uint64_t)CODE16_LARGEST);
	shift = 63u - CODE16_MANTISSA - (unsigned)__builtin_clzll(count);
	/* Rounding up may carry into the next power of two, whose code comes next. */
	return (uint16_t)((shift << CODE16_MANTISSA) + ((count + (1ULL << (shift - 1))) >> shift));
}

/* code is at most CODE16_TOP. */
static inline uint64_t code16_count(uint16_t code)
{
	unsigned shift = code >> CODE16_MANTISSA;

	if (shift < 2)
		return code;
	shift--;
	return (uint64_t)(code - (shift << CODE16_MANTISSA)) << shift;
}

/* A negative duration is coded as 0. */
static inline uint16_t code16_of_ns(int64_t ns)
{
	return code16_of_count(ns > 0 ? (uint64_t)ns : 0);
}

static inline int64_t code16_ns(uint16_t code)
{
	return (int64_t)code16_count(code);
}

/* frac >= 0; negative values and NAN give CODE16_ABSENT. */
static inline uint16_t code16_of_frac(double frac)
{
	if (!(frac >= 0))
		return CODE16_ABSENT;
	return code16_of_count((uint64_t)(fmin(frac, 0x1p32) * CODE16_FRACTION + 0.5));
}

/* NAN for CODE16_ABSENT. */
static inline double code16_frac(uint16_t code)
{
	return code == CODE16_ABSENT ? (double)NAN : (double)code16_count(code) / CODE16_FRACTION;
}
