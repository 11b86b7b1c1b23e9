/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that nearly all values of a trace are, eight digits at a time and without the
 * general parser: whole ones, and times in microseconds with three decimals.
 */
#pragma once

#include "read/kineto/scan.h"

/*
 * The value of the digits at p, of which the first eight are taken; returns how many. It takes
 * as long for one as for eight: how many digits the next number has cannot be foreseen.
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
	v <<= 64 - 8 * cnt; /* zeros in front, what is no digit falls off */
	/* Neighbors become numbers of two digits, of four, of eight: the first is lowest. */
	v = v * (1 + (10 << 8)) >> 8;
	v = (v & 0x00ff00ff00ff00ffULL) * (1 + (100 << 16)) >> 16;
	*ret = (v & 0x0000ffff0000ffffULL) * (1 + (10000ULL << 32)) >> 32;
	return cnt;
}

/*
 * The usual number: up to 18 digits and nothing else. Consumes it and returns
 * true, or false with nothing consumed: then scan_number() tells.
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
 * The usual time: up to 15 digits of microseconds, a point, three digits and nothing else.
 * Consumes it and returns true with nanoseconds, or false with nothing consumed.
 */
static inline bool scan_plain_us(struct scan *scan, int64_t *ret_ns)
{
	const uint8_t *p = scan->p;
	uint64_t us; /* of too many digits it wraps, and is not used */
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
