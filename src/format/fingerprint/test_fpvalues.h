/* SPDX-License-Identifier: Apache-2.0 */
/* Random values of a fingerprint's fields, for tests. rng: set it before the first draw. */
#pragma once

#include "base/test_random.h"
#include "format/fingerprint/fingerprint.h"

#include <math.h>

static uint64_t rng;

static uint64_t rnd(void)
{
	return test_random(&rng);
}

static size_t below(size_t limit)
{
	return (size_t)test_below(&rng, (int64_t)limit);
}

static double some_frac(void)
{
	static const double special[] = { 0, 1, (double)NAN, 5e-324 };
	size_t pick = below(8);

	return pick < 4 ? special[pick] : test_uniform(&rng);
}

static const char *some_text(struct fingerprint *fp)
{
	char text[40];
	size_t len = below(sizeof(text));

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(1 + below(255));
	return arena_strndup(&fp->arena, text, len);
}
