/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers for tests, identical on every machine. The test owns the state; its seed is any
 * number but 0.
 * Source: xorshift64*, S. Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled", 2016.
 */
#pragma once

#include <stdint.h>

static inline uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* An integer in 0..limit - 1. */
static inline int64_t test_below(uint64_t *state, int64_t limit)
{
	return (int64_t)(test_random(state) % (uint64_t)limit);
}

/* Uniform in [0, 1). */
static inline double test_uniform(uint64_t *state)
{
	return (double)(test_random(state) >> 11) * 0x1p-53;
}
