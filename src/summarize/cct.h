/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling-context tree whose nodes are the functions of a fingerprint; their names and keys are
 * those of format/fingerprint/funckey.h. Also a map by node and class.
 * Source: PerfTracker section 4.2 ("the entire call stack must be identical to be considered the
 * same function").
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "format/fingerprint/funckey.h"

#define CCT_ROOT FRAME_NONE

struct cct_node {
	struct funckey key;
	uint32_t parent; /* CCT_ROOT at a root */
	uint32_t name;	 /* string id in cct.names: the display name */
	uint8_t kind;	 /* enum event_kind */
};

/* Canonical and display name of a raw name, for one kind. */
struct cct_name {
	uint32_t canonical, display; /* ids in cct.names */
	bool known;
	uint8_t kind;
};

/* The child that was requested after this node the last time. */
struct cct_next {
	uint32_t parent, raw_id, node;
	uint8_t kind;
};

struct cct {
	struct strtab names; /* display names, and canonical names after a kind letter */
	VEC(struct cct_node) nodes;
	struct idmap by_parent;	     /* (parent, canonical id) -> node */
	VEC(struct cct_name) by_raw; /* by raw name id, for the kind requested last */
	VEC(struct cct_next) nexts;  /* by node: iterations repeat the same order of requests */
	uint32_t last;		     /* the node requested last, if nexts is not empty */
	struct str scratch;
};

/* Returns 0 or -ENOMEM. cct_done() is fine on a zeroed tree. */
_must_check_ int cct_init(struct cct *cct);
void cct_done(struct cct *cct);

/*
 * Node of function name under parent, created if new. raw_id: the name's id in a table of the
 * caller, without large gaps, used as a cache key. FRAME_NONE: out of memory.
 */
_must_check_ uint32_t cct_child(struct cct *cct, uint32_t parent, enum event_kind kind,
				uint32_t raw_id, const char *name);

/* The same for a name without an id. */
_must_check_ uint32_t cct_child_text(struct cct *cct, uint32_t parent, enum event_kind kind,
				     const char *name);

/*
 * A map from (node, class) to an index. Nodes are numbered from 0 without gaps, so it is an array
 * without hashing.
 */
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
