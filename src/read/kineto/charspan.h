/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crossing runs of bytes that need no thought: plain string bytes (ASCII, no
 * quote, no backslash, no control byte) and spaces. The text must be followed
 * by RUN_PAD bytes of which the first is zero: they stop every run.
 *
 * SSE2 belongs to every x86-64; AVX2 is chosen at run time. -DRUN_PORTABLE
 * builds the plain C version that other machines get.
 */
#pragma once

#include "base/base.h"

#include <string.h>

#define RUN_PAD 64u

#if defined(__SSE2__) && !defined(RUN_PORTABLE)
#define RUN_SSE2 1
#include <emmintrin.h>
#endif

#define RUN_WORD 8u

static inline bool run_same_word(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, RUN_WORD) == 0; /* of a known length: two loads */
}

/* For runs longer than the 16 bytes that run_plain() looks at itself. */
typedef const uint8_t *run_fn(const uint8_t *p);
run_fn *run_select(void);

static inline bool run_stops(uint8_t c)
{
	return c == '"' || c == '\\' || c < 0x20 || c >= 0x80;
}

#ifdef RUN_SSE2

/* What run_same() compares at once. */
#define RUN_BLOCK 16u

static inline bool run_same(const uint8_t *a, const uint8_t *b)
{
	__m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
				      _mm_loadu_si128((const __m128i *)(const void *)b));

	return _mm_movemask_epi8(same) == 0xffff;
}

/* Bit i: byte i ends a run. Signed compare: bytes >= 0x80 are below 0x20 too. */
static inline unsigned int run_stop_mask(const uint8_t *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i stops = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
				     _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));

	stops = _mm_or_si128(stops, _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)));
	return (unsigned int)_mm_movemask_epi8(stops);
}

static inline const uint8_t *run_plain(run_fn *run, const uint8_t *p)
{
	unsigned int mask = run_stop_mask(p);

	return mask != 0 ? p + __builtin_ctz(mask) : run(p + 16);
}

static inline const uint8_t *run_spaces(const uint8_t *p)
{
	const __m128i space = _mm_set1_epi8(' ');

	for (;; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned int mask = (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(v, space));

		if (mask != 0xffff)
			return p + __builtin_ctz(~mask);
	}
}

#else

#define RUN_BLOCK RUN_WORD

static inline bool run_same(const uint8_t *a, const uint8_t *b)
{
	return run_same_word(a, b);
}

static inline const uint8_t *run_plain(run_fn *run, const uint8_t *p)
{
	return run(p);
}

static inline const uint8_t *run_spaces(const uint8_t *p)
{
	while (*p == ' ')
		p++;
	return p;
}

#endif
