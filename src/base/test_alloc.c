/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test_alloc.h"

#include <stddef.h>

_Thread_local long allocations_left = -1;
_Thread_local bool allocations_fail_once;

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool allocation_fails(void)
{
	bool fails = allocations_left == 0;

	if (allocations_left > 0 || (fails && allocations_fail_once))
		allocations_left--;
	return fails;
}

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(cnt, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(p, size);
}
