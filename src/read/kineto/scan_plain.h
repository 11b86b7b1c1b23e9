/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast paths for the two forms that nearly all numbers of a trace have, eight digits at a
 * time: integers, and times in microseconds with three decimals.
 */
#pragma once

#include "read/kineto/scan_values.h"

/*
 * The value of the first eight digits at p, or fewer; returns how many. Without a branch on
 * their number, which the CPU could not predict.
 */
static inline size_t scan_digits(const uint8_t *p, uint64_t *ret)
{
	const uint64_t tops = 0x8080808080808080ULL;
	uint64_t v, others;
	size_t cnt;

	*ret = 0;
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		return 0;
	memcpy(&v, p, sizeof(v));
	v ^= 0x3030303030303030ULL;
	others = (v | ((v & ~tops) + 0x7676767676767676ULL)) & tops; /* 10 + 0x76 has the top bit */
	cnt = others != 0 ? (size_t)__builtin_ctzll(others) / 8 : 8;
	if (cnt == 0)
		return 0;
	v <<= 64 - 8 * cnt; /* leading zeros; shifts out the bytes behind the digits */
	/* Neighbors become numbers of two digits, of four, of eight: the first is lowest. */
	v = v * (1 + (10 << 8)) >> 8;
	v = (v & 0x00ff00ff00ff00ffULL) * (1 + (100 << 16)) >> 16;
	*ret = (v & 0x0000ffff0000ffffULL) * (1 + (10000ULL << 32)) >> 32;
	return cnt;
}

/*
 * An integer of up to 18 digits. Consumes it and returns true, or false with nothing
 * consumed: then scan_number() parses or rejects it.
 */
static inline bool scan_plain_int(struct scan *scan, uint64_t *ret)
{
	const uint8_t *p = scan->p;
	uint64_t value;
	unsigned int digit;

	for (p += scan_digits(p, &value); (digit = (unsigned int)*p - '0') < 10; p++)
		value = value * 10 + digit;
	if (*p != ',' && *p != ']' && *p != '}' && *p != '\n')
		return false;
	if ((size_t)(p - scan->p) - 1 >= 18 || (*scan->p == '0' && p - scan->p > 1))
		return false;
	scan->p = p;
	*ret = value;
	return true;
}

/*
 * A time: up to 15 digits of microseconds, a point, three digits. Consumes it and returns
 * true with nanoseconds, or false with nothing consumed.
 */
static inline bool scan_plain_us(struct scan *scan, int64_t *ret_ns)
{
	const uint8_t *p = scan->p;
	uint64_t us; /* wraps with too many digits; then it is unused */
	unsigned int digit, a, b, c;

	for (p += scan_digits(p, &us); (digit = (unsigned int)*p - '0') < 10; p++)
		us = us * 10 + digit;
	/* Behind the window's end lie zeros: no point, and no digits. */
	if (*p != '.' || (size_t)(p - scan->p) - 1 >= 15 || (*scan->p == '0' && p - scan->p > 1))
		return false;
	a = (unsigned int)p[1] - '0';
	b = (unsigned int)p[2] - '0';
	c = (unsigned int)p[3] - '0';
	if (a > 9 || b > 9 || c > 9 || (p[4] != ',' && p[4] != '\n' && p[4] != '}'))
		return false;
	scan->p = p + 4;
	*ret_ns = (int64_t)(us * 1000 + a * 100 + b * 10 + c);
	return true;
}
