/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one pass: allocate freely, free once. A pass is one trace read, one
 * profile summarized or one report made. Blocks are never moved, so pointers
 * into the arena stay valid until arena_done().
 */
#pragma once

#include "base/base.h"

struct arena_block;

struct arena {
	struct arena_block *head; /* newest block, NULL when nothing was allocated */
	size_t total_bytes;	  /* sum of the blocks, for limits and reports */
};

void arena_init(struct arena *arena);
void arena_done(struct arena *arena);

/* size bytes, aligned for any type, not cleared. NULL: out of memory. */
_must_check_ void *arena_alloc(struct arena *arena, size_t size);

/* cnt * size bytes set to zero. NULL: out of memory or the product overflows. */
_must_check_ void *arena_calloc(struct arena *arena, size_t cnt, size_t size);

/* A NUL-terminated copy of text[len]. NULL: out of memory. */
_must_check_ char *arena_strndup(struct arena *arena, const char *text, size_t len);
_must_check_ char *arena_strdup(struct arena *arena, const char *text);

/* A formatted string. NULL: out of memory. */
_must_check_ char *arena_printf(struct arena *arena, const char *fmt, ...) _printf_(2, 3);
