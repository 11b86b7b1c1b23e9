/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many elements an operator was given, in the 16 bits that a record has left
 * (format/flight.h): 0 unknown, else 1 more than the count's code (format/code16.h).
 */
#pragma once

#include "model/code16.h"

#define ELEMENTS_MAX (INT64_C(1) << 48) /* more is taken for garbage: unknown */

static inline uint16_t elements_encode(int64_t elements)
{
	if (elements < 0 || elements > ELEMENTS_MAX)
		return 0;
	return (uint16_t)(code16_of_count((uint64_t)elements) + 1);
}

/* Any code: -1 is unknown, as is one that elements_encode() never gives. */
static inline int64_t elements_decode(uint16_t code)
{
	uint64_t elements;

	if (code == 0 || code - 1 > (int)CODE16_TOP)
		return -1;
	elements = code16_count((uint16_t)(code - 1));
	return elements <= ELEMENTS_MAX ? (int64_t)elements : -1;
}
