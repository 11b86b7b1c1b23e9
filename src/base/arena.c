/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Large enough that a pass has few blocks. The first ones are small: of a hundred thousand
 * fingerprints of some kilobytes each, what lies unused at the end of a page counts.
 */
#define BLOCK_BYTES (64u * 1024u)
#define FIRST_BLOCK_BYTES 512u
#define FIRST_BYTES (32u * 1024u)
#define ALIGN 16u

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(ALIGN) unsigned char data[];
};

void arena_init(struct arena *arena)
{
	*arena = (struct arena){ 0 };
}

void arena_done(struct arena *arena)
{
	struct arena_block *block = arena->head;

	while (block != NULL) {
		struct arena_block *next = block->next;

		free(block);
		block = next;
	}
	arena_init(arena);
}

static struct arena_block *block_new(struct arena *arena, size_t need)
{
	size_t usual = arena->total_bytes < FIRST_BYTES ? FIRST_BLOCK_BYTES : BLOCK_BYTES;
	size_t size = MAX(usual, need);
	struct arena_block *block;

	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + size);
	if (block == NULL)
		return NULL;
	block->size = size;
	block->used = 0;
	arena->total_bytes += sizeof(*block) + size;
	/* A block made for one large piece is full at once: keep filling the old one. */
	if (need > usual / 4 && arena->head != NULL) {
		block->next = arena->head->next;
		arena->head->next = block;
	} else {
		block->next = arena->head;
		arena->head = block;
	}
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->head;
	void *piece;

	if (size > SIZE_MAX - ALIGN)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (block == NULL || block->size - block->used < size)
		block = block_new(arena, size);
	if (block == NULL)
		return NULL;
	piece = block->data + block->used;
	block->used += size;
	return piece;
}

void *arena_calloc(struct arena *arena, size_t cnt, size_t size)
{
	size_t bytes;
	void *piece;

	if (__builtin_mul_overflow(cnt, size, &bytes))
		return NULL;
	piece = arena_alloc(arena, bytes);
	if (piece != NULL)
		memset(piece, 0, bytes);
	return piece;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;

	if (copy == NULL)
		return NULL;
	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	char *text;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = len >= 0 ? arena_alloc(arena, (size_t)len + 1) : NULL;
	if (text != NULL)
		(void)vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}
