/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/region.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 16 };

static size_t round_up(size_t size)
{
	return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

struct region *region_new(size_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct region *region = base;

	if (base == MAP_FAILED)
		return NULL;
	region->base = base;
	region->size = size;
	atomic_store_explicit(&region->used, round_up(sizeof(*region)), memory_order_relaxed);
	return region;
}

struct region *region_free(struct region *region)
{
	if (region != NULL)
		(void)munmap(region->base, region->size);
	return NULL;
}

void *region_alloc(struct region *region, size_t size)
{
	size_t used = atomic_load_explicit(&region->used, memory_order_relaxed);

	if (size > region->size || round_up(size) > region->size - used) {
		atomic_fetch_add_explicit(&region->refused, 1, memory_order_relaxed);
		return NULL;
	}
	atomic_store_explicit(&region->used, used + round_up(size), memory_order_relaxed);
	return region->base + used;
}

const char *region_text(struct region *region, const char *text, size_t len)
{
	char *copy = region_alloc(region, len + 1);

	if (copy != NULL)
		memcpy(copy, text, len);
	return copy;
}
