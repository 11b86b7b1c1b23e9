/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <errno.h>

int vec_grow_bytes(void **data, size_t *cap, size_t need, size_t elem_size)
{
	size_t want = *cap, bytes;
	void *grown;

	/* Half as much again: realloc of large blocks moves pages, not bytes. */
	want = want < 8 ? 8 : want + want / 2;
	if (want < need)
		want = need;
	if (__builtin_mul_overflow(want, elem_size, &bytes))
		return -ENOMEM;
	grown = realloc(*data, bytes);
	if (grown == NULL)
		return -ENOMEM;
	*data = grown;
	*cap = want;
	return 0;
}
