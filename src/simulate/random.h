/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers by position instead of by order: the number for rank r, iteration i and operation
 * k is a hash of them, so that a worker can be simulated alone, twice, or by another thread, with
 * the same result.
 * Source: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
 */
#pragma once

#include "base/base.h"
#include "base/splitmix.h"

#include <math.h>

/* The use of a number: equal coordinates give unrelated numbers for different uses. */
enum random_use {
	RANDOM_KERNEL,
	RANDOM_HOST,
	RANDOM_CHIP,
	RANDOM_NETWORK,
	RANDOM_CHUNK,
	RANDOM_SAMPLE,
	RANDOM_CLOCK,
	RANDOM_HICCUP,
	RANDOM_CHOICE,
	RANDOM_WHEN,
	RANDOM_SIZE,
};

static inline uint64_t random_mix(uint64_t x)
{
	return splitmix_next(&x);
}

/* 64 random bits for a use and up to three coordinates below 2^32. */
static inline uint64_t random_at(uint64_t seed, enum random_use use, uint64_t a, uint64_t b,
				 uint64_t c)
{
	return random_mix(random_mix(random_mix(seed + (uint64_t)use) ^ a) ^ (b << 32 | c));
}

/* Uniform in [0, 1). */
static inline double random_uniform(uint64_t bits)
{
	return splitmix_fraction(bits);
}

/*
 * Nearly normal with mean 0 and deviation 1, never beyond 3.5: the sum of four uniform numbers of
 * 16 bits (Irwin and Hall). Jitter has no long tail; rare and large effects are modeled as faults.
 */
static inline double random_gauss(uint64_t bits)
{
	double sum = 0;

	for (int i = 0; i < 4; i++, bits >>= 16)
		sum += (double)(bits & 0xffff) * 0x1p-16;
	return (sum - 2) * 1.7320508075688772;
}
