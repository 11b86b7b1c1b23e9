/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of input elements of an operator, in the 16 free bits of a record
 * (format/shared/recorder.h): 0 unknown, else 1 + the count's code (model/code16.h).
 */
#pragma once

#include "model/code16.h"

#define ELEMENTS_MAX (INT64_C(1) << 48) /* a larger count is invalid: unknown */

static inline uint16_t elements_encode(int64_t elements)
{
	if (elements < 0 || elements > ELEMENTS_MAX)
		return 0;
	return (uint16_t)(code16_of_count((uint64_t)elements) + 1);
}

/* Accepts any code; returns -1 for unknown and for codes that elements_encode() never returns. */
static inline int64_t elements_decode(uint16_t code)
{
	uint64_t elements;

	if (code == 0 || code - 1 > (int)CODE16_TOP)
		return -1;
	elements = code16_count((uint16_t)(code - 1));
	return elements <= ELEMENTS_MAX ? (int64_t)elements : -1;
}
