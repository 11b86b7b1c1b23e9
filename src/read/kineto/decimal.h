/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of a JSON text in exact integers. A time in microseconds with three
 * decimals does not fit a double (1712195495519689.047 us loses 0.2 us), so
 * numbers stay decimal: mantissa * 10^exp10.
 */
#pragma once

#include "base/base.h"

struct number {
	const uint8_t *text; /* the literal, borrowed until the next token; a byte follows that
			      * cannot continue a number */
	size_t len;
	uint64_t mant; /* all its digits, 19 at most */
	int32_t exp10; /* clamped to +-100000; with cut: the exponent as written */
	bool negative;
	bool cut; /* more digits than mant holds: mant is meaningless */
};

/*
 * value * 10^scale10, halves rounded away from zero. Exact for any literal.
 * Returns 0 or -ERANGE; *ret is written on success only.
 */
_must_check_ int number_scaled(const struct number *number, int scale10, int64_t *ret);

/* The value as an integer: 0, -ERANGE, or -EINVAL when it has a fraction. */
_must_check_ int number_int64(const struct number *number, int64_t *ret);

/* An id: as above over 0..2^64-1; a negative int64 gives its bit pattern. */
_must_check_ int number_id(const struct number *number, uint64_t *ret);

/* The nearest double: 0 or -ERANGE when it is not finite. */
_must_check_ int number_double(const struct number *number, double *ret);
