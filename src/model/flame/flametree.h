/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks with weights in one tree, callers first: what a flame graph shows. Each node has the
 * set of members, for example ranks, that have it, so that the one that is elsewhere stands out.
 * Limits: FLAMETREE_NODES_MAX nodes; what is deeper stays with its caller, and is counted.
 */
#pragma once

#include "base/idmap.h"
#include "base/strtab.h"
#include "base/vec.h"

#define FLAMETREE_NODES_MAX (1u << 20)
#define FLAMETREE_NONE UINT32_MAX
#define FLAMETREE_ROOT 0u

enum flametree_kind {
	FLAMETREE_OTHER, /* the root, a thread */
	FLAMETREE_PYTHON,
	FLAMETREE_OPERATOR, /* of PyTorch, and calls of a GPU's runtime */
	FLAMETREE_DEVICE,   /* kernels and copies */
};

struct flametree_node {
	uint32_t parent, first_child, next; /* FLAMETREE_NONE: none; siblings: the heaviest first */
	uint32_t label;			    /* in labels */
	uint32_t depth;			    /* 0: the root */
	uint8_t kind;			    /* enum flametree_kind */
	double self, total;		    /* weight; total is set by flametree_finish() */
	double now;			    /* own weight since flametree_end_member() */
	double most;			    /* the total of the member that has the most */
	uint32_t most_member;
	VEC(uint32_t) members; /* ascending, if added so */
};

struct flametree {
	struct strtab labels;
	VEC(struct flametree_node) nodes; /* parents before children */
	struct idmap by_edge;
	size_t member_cnt; /* one more than the largest */
	size_t dropped;	   /* frames beyond the limit */
};

/* Returns 0 or -ENOMEM; flametree_done() in either case. */
_must_check_ int flametree_init(struct flametree *tree);
void flametree_done(struct flametree *tree);

/*
 * The child of parent with this label (an id of flametree_label()) and kind, made if new; member
 * has it then. Members are added in ascending order. At the limit parent itself is returned.
 * Returns FLAMETREE_NONE when out of memory.
 */
_must_check_ uint32_t flametree_child(struct flametree *tree, uint32_t parent, uint32_t label,
				      enum flametree_kind kind, uint32_t member);

/* The id of a label; STRTAB_NONE: out of memory. */
_must_check_ uint32_t flametree_label(struct flametree *tree, const char *text);

/* Adds to a node's own weight. */
void flametree_weigh(struct flametree *tree, uint32_t node, double weight);

/* Ends the stacks of one member, and finds where it has the most of all. */
void flametree_end_member(struct flametree *tree, uint32_t member);

/* Sums up, and orders siblings: by weight, then label. Returns 0 or -ENOMEM. */
_must_check_ int flametree_finish(struct flametree *tree);

/* The next node in depth-first order after node; FLAMETREE_NONE at the end. O(1) amortized. */
uint32_t flametree_next(const struct flametree *tree, uint32_t node);

static inline const char *flametree_text(const struct flametree *tree, uint32_t node)
{
	return strtab_text(&tree->labels, tree->nodes.data[node].label);
}
