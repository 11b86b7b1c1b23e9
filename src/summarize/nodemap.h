/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from (node of the calling-context tree, class) to an index. Nodes are numbered from 0
 * without gaps, so it is an array without hashing.
 */
#pragma once

#include "base/vec.h"
#include "model/event.h"

#define NODEMAP_NONE UINT32_MAX

struct nodemap {
	VEC(uint32_t) slots;
};

static inline void nodemap_done(struct nodemap *map)
{
	vec_done(&map->slots);
}

/* Index of (node, class), NODEMAP_NONE when absent. */
static inline uint32_t nodemap_get(const struct nodemap *map, uint32_t node, uint8_t class)
{
	size_t slot = (size_t)node * CLASS_CNT + class;

	return slot < map->slots.cnt ? map->slots.data[slot] : NODEMAP_NONE;
}

/* Sets (node, class) to idx. Returns 0 or -ENOMEM. */
_must_check_ static inline int nodemap_set(struct nodemap *map, uint32_t node, uint8_t class,
					   uint32_t idx)
{
	size_t slot = (size_t)node * CLASS_CNT + class;
	int error = vec_reserve(&map->slots, slot + 1);

	if (error < 0)
		return error;
	while (map->slots.cnt <= slot)
		map->slots.data[map->slots.cnt++] = NODEMAP_NONE;
	map->slots.data[slot] = idx;
	return 0;
}
