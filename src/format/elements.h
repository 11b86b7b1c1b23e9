/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many elements an operator was given, in the 16 bits that a record has left
 * (format/flight.h): a floating-point number of 6 bits of exponent and 10 of
 * fraction, so exact below 2048 and less than a thousandth too small above.
 *
 *	0	unknown
 *	c + 1	c < 1024: c elements; else (1024 + c % 1024) << (c / 1024 - 1)
 */
#pragma once

#include "base/base.h"

#define ELEMENTS_FRACTION_BITS 10
#define ELEMENTS_MAX_BITS 48
#define ELEMENTS_MAX (INT64_C(1) << ELEMENTS_MAX_BITS) /* more is taken for garbage: unknown */

static inline uint16_t elements_encode(int64_t elements)
{
	const int64_t one = 1 << ELEMENTS_FRACTION_BITS;
	int shift;

	if (elements < 0 || elements > ELEMENTS_MAX)
		return 0;
	if (elements < one)
		return (uint16_t)(elements + 1);
	shift = 63 - __builtin_clzll((unsigned long long)elements) - ELEMENTS_FRACTION_BITS;
	return (uint16_t)(one * shift + (elements >> shift) + 1);
}

/* Any code: -1 is unknown, as is one that elements_encode() never gives. */
static inline int64_t elements_decode(uint16_t code)
{
	const int64_t one = 1 << ELEMENTS_FRACTION_BITS;
	int64_t bits = code - 1, shift = bits / one - 1;

	if (shift > ELEMENTS_MAX_BITS - ELEMENTS_FRACTION_BITS)
		return -1;
	if (bits >= one)
		bits = (one + bits % one) << shift;
	return bits <= ELEMENTS_MAX ? bits : -1;
}
