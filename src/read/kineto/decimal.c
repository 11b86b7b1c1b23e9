/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/decimal.h"

#include <errno.h>
#include <math.h>

typedef unsigned __int128 u128;

/* 10^37 is the largest power of ten whose nine-fold still fits 128 bits. */
#define WIDE_DIGITS 37

static const uint64_t pow10_u64[20] = {
	1ULL,
	10ULL,
	100ULL,
	1000ULL,
	10000ULL,
	100000ULL,
	1000000ULL,
	10000000ULL,
	100000000ULL,
	1000000000ULL,
	10000000000ULL,
	100000000000ULL,
	1000000000000ULL,
	10000000000000ULL,
	100000000000000ULL,
	1000000000000000ULL,
	10000000000000000ULL,
	100000000000000000ULL,
	1000000000000000000ULL,
	10000000000000000000ULL,
};

/* A magnitude wider than struct number keeps. */
struct wide {
	u128 mant;
	int64_t exp10;
};

/* Up to 37 digits of the literal; what follows them is below any rounding. */
static struct wide wide_parse(const struct number *number)
{
	struct wide wide = { .exp10 = number->exp10 };
	int digits = 0, kept_frac = 0, dropped_int = 0;
	bool frac = false;

	if (!number->cut) {
		wide.mant = number->mant;
		return wide;
	}
	for (size_t i = 0; i < number->len; i++) {
		uint8_t c = number->text[i];

		if (c == 'e' || c == 'E')
			break;
		frac |= c == '.';
		if (c < '0' || c > '9')
			continue;
		if (digits < WIDE_DIGITS) {
			wide.mant = wide.mant * 10 + (u128)(c - '0');
			digits += wide.mant != 0;
			kept_frac += frac;
		} else {
			dropped_int += !frac;
		}
	}
	/* With cut set, exp10 is the exponent written in the text. */
	wide.exp10 += dropped_int - kept_frac;
	return wide;
}

/* Magnitude of value * 10^scale10, rounded. -ERANGE above limit. */
static int wide_scale(struct wide wide, int scale10, uint64_t limit, uint64_t *ret, bool *ret_exact)
{
	int64_t exp10 = wide.exp10 + scale10;
	u128 mant = wide.mant;

	*ret_exact = true;
	for (; exp10 > 0 && mant != 0; exp10--) {
		if (mant > limit)
			return -ERANGE;
		mant *= 10;
	}
	if (exp10 < -39) {
		*ret_exact = mant == 0;
		mant = 0;
	}
	/* Drop digits one by one; the last one dropped decides the rounding. */
	for (unsigned int last = 0; exp10 < 0 && mant != 0; exp10++) {
		last = (unsigned int)(mant % 10);
		mant /= 10;
		*ret_exact &= last == 0;
		if (exp10 == -1)
			mant += last >= 5;
	}
	if (mant > limit)
		return -ERANGE;
	*ret = (uint64_t)mant;
	return 0;
}

static int signed_value(bool negative, uint64_t magnitude, int64_t *ret)
{
	if (magnitude > (uint64_t)INT64_MAX)
		return -ERANGE;
	*ret = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	return 0;
}

int number_scaled(const struct number *number, int scale10, int64_t *ret)
{
	int exp10 = number->exp10 + scale10;
	uint64_t magnitude;
	bool exact;
	int r;

	/* The usual forms: 3 decimals to ns (exponent 0), whole us to ns (3). */
	if (!number->cut && exp10 >= 0 && exp10 < 19 &&
	    !__builtin_mul_overflow(number->mant, pow10_u64[exp10], &magnitude))
		return signed_value(number->negative, magnitude, ret);
	r = wide_scale(wide_parse(number), scale10, (uint64_t)INT64_MAX, &magnitude, &exact);
	return r < 0 ? r : signed_value(number->negative, magnitude, ret);
}

static int whole_value(const struct number *number, uint64_t *ret)
{
	uint64_t magnitude;
	bool exact;
	int r;

	if (!number->cut && number->exp10 == 0) {
		*ret = number->mant;
		return 0;
	}
	r = wide_scale(wide_parse(number), 0, UINT64_MAX, &magnitude, &exact);
	if (r < 0)
		return r;
	if (!exact)
		return -EINVAL;
	*ret = magnitude;
	return 0;
}

int number_int64(const struct number *number, int64_t *ret)
{
	uint64_t magnitude;
	int r = whole_value(number, &magnitude);

	return r < 0 ? r : signed_value(number->negative, magnitude, ret);
}

int number_id(const struct number *number, uint64_t *ret)
{
	uint64_t magnitude;
	int64_t value;
	int r = whole_value(number, &magnitude);

	if (r < 0)
		return r;
	if (!number->negative) {
		*ret = magnitude;
		return 0;
	}
	r = signed_value(true, magnitude, &value);
	if (r == 0)
		*ret = (uint64_t)value;
	return r;
}

int number_double(const struct number *number, double *ret)
{
	/* The literal was checked, and the byte that ended it ends strtod() too. */
	double value = strtod((const char *)number->text, NULL);

	if (!isfinite(value))
		return -ERANGE;
	*ret = value;
	return 0;
}
