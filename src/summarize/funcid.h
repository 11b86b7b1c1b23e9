/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling-context tree whose nodes are the functions of a fingerprint; their
 * names and keys are those of format/funckey.h.
 * Source: PerfTracker section 4.2 ("the entire call stack must be identical to be
 * considered the same function").
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

/* What a raw name is as a function of one kind. */
struct cct_name {
	uint32_t canonical, display; /* ids in cct.names */
	bool known;
	uint8_t kind;
};

/* The child that was asked for after a node was. */
struct cct_next {
	uint32_t parent, raw_id, node;
	uint8_t kind;
};

struct cct {
	struct strtab names; /* display names, and canonical names behind a kind letter */
	VEC(struct cct_node) nodes;
	struct idmap by_parent;	     /* (parent, canonical id) -> node */
	VEC(struct cct_name) by_raw; /* by raw name id, of the kind asked for last */
	VEC(struct cct_next) nexts;  /* by node: iterations ask in the same order again */
	uint32_t last;		     /* node that was asked for last, if there are nexts */
	struct str scratch;
};

/* Returns 0 or -ENOMEM. cct_done() is fine on a zeroed tree. */
_must_check_ int cct_init(struct cct *cct);
void cct_done(struct cct *cct);

/*
 * Node of the function called name (raw id raw_id in some table of the caller, whose ids
 * have no large gaps, used as a cache key) under parent, made when new. FRAME_NONE: out of memory.
 */
_must_check_ uint32_t cct_child(struct cct *cct, uint32_t parent, enum event_kind kind,
				uint32_t raw_id, const char *name);

/* The same for a name that no table holds. */
_must_check_ uint32_t cct_child_text(struct cct *cct, uint32_t parent, enum event_kind kind,
				     const char *name);
