/* SPDX-License-Identifier: Apache-2.0 */
/* Compares text with the shapes that were learned: the inner loop of the JSON reader. */
#pragma once

#include "read/kineto/shape.h"

#include <string.h>

/* Whether text[len] is at p, of which at least len bytes may be read. */
static inline bool shape_fits(const uint8_t *text, const uint8_t *p, size_t len)
{
	size_t i = 0;

	if (len < RUN_WORD)
		return memcmp(text, p, len) == 0;
	if (len < RUN_BLOCK)
		return run_same_word(text, p) &&
		       run_same_word(text + len - RUN_WORD, p + len - RUN_WORD);
	for (; i + RUN_BLOCK <= len; i += RUN_BLOCK) {
		if (!run_same(text + i, p + i))
			return false;
	}
	return run_same(text + len - RUN_BLOCK, p + len - RUN_BLOCK);
}

/* The child of shape at whose text is at the scan's place; SHAPE_ROOT: none. */
static inline uint16_t shapes_next(struct shapes *shapes, uint16_t at)
{
	const uint8_t *p = shapes->scan->p;
	size_t left = (size_t)(shapes->scan->end - p);
	uint16_t *hint = &shapes->list[at == SHAPE_ROOT ? shapes->last_end : at].hint;
	const struct shape *shape = &shapes->list[*hint];

	if (*hint != SHAPE_ROOT && shape->len <= left && shape_fits(shape->text, p, shape->len))
		return *hint;
	for (uint16_t i = shapes->list[at].child; i != SHAPE_ROOT; i = shape->sibling) {
		shape = &shapes->list[i];
		if (shape->len <= left && shape_fits(shape->text, p, shape->len)) {
			*hint = i;
			return i;
		}
	}
	return SHAPE_ROOT;
}
