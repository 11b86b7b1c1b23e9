/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/charspan.h"

#ifdef RUN_SSE2
#include <immintrin.h>

static const uint8_t *run_sse2(const uint8_t *p)
{
	unsigned int mask;

	while ((mask = run_stop_mask(p)) == 0)
		p += 16;
	return p + __builtin_ctz(mask);
}

__attribute__((target("avx2"))) static const uint8_t *run_avx2(const uint8_t *p)
{
	const __m256i quote = _mm256_set1_epi8('"'), slash = _mm256_set1_epi8('\\');
	const __m256i space = _mm256_set1_epi8(0x20);

	for (;; p += 32) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
		__m256i stops =
			_mm256_or_si256(_mm256_cmpeq_epi8(v, quote), _mm256_cmpeq_epi8(v, slash));
		unsigned int mask;

		stops = _mm256_or_si256(stops, _mm256_cmpgt_epi8(space, v));
		mask = (unsigned int)_mm256_movemask_epi8(stops);
		if (mask != 0)
			return p + __builtin_ctz(mask);
	}
}

run_fn *run_select(void)
{
	return __builtin_cpu_supports("avx2") ? run_avx2 : run_sse2;
}

#else

static const uint8_t *run_bytes(const uint8_t *p)
{
	while (!run_stops(*p))
		p++;
	return p;
}

run_fn *run_select(void)
{
	return run_bytes;
}

#endif
