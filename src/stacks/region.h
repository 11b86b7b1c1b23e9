/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a process and its child share at the same addresses, so that the child fills structs
 * with pointers and its parent reads them, also after the child died half-way. Allocated from one
 * end to the other, freed at once. Pages that were never touched cost nothing.
 */
#pragma once

#include "base/base.h"

struct region {
	unsigned char *base;
	size_t size;
	_Atomic size_t used;
	_Atomic size_t refused; /* allocations for which there was no room */
};

/* NULL: out of memory. The region is at the start of its own memory. */
_must_check_ struct region *region_new(size_t size);
struct region *region_free(struct region *region);

/* size bytes, set to zero, aligned for any type. NULL: the region is full. */
_must_check_ void *region_alloc(struct region *region, size_t size);

/* A NUL-terminated copy of text[len], NULL as above. */
_must_check_ const char *region_text(struct region *region, const char *text, size_t len);
