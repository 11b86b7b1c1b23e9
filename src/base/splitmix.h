/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SplitMix64: a hash of 64 bits in which each input bit affects each output bit, and
 * the random numbers it makes from a counter. Small, seedable, the same on every machine.
 * Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
 */
#pragma once

#include <stdint.h>

#define SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t splitmix_finish(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The next number; any initial state is valid. */
static inline uint64_t splitmix_next(uint64_t *state)
{
	*state += SPLITMIX_STEP;
	return splitmix_finish(*state);
}

/* The upper 53 bits as a number in [0, 1). */
static inline double splitmix_fraction(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

/* The next number as one in [0, 1). */
static inline double splitmix_uniform(uint64_t *state)
{
	return splitmix_fraction(splitmix_next(state));
}
