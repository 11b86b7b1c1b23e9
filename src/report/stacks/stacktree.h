/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of many processes in one tree: state of the process, role of the thread, frames from
 * the outermost on. Each node knows which processes have it, so that the one that is elsewhere
 * stands out. Processes of which nothing could be read have a node of their own.
 */
#pragma once

#include "base/strtab.h"
#include "report/stacks/stackframe.h"

enum stacktree_kind { STACKTREE_ROOT, STACKTREE_STATE, STACKTREE_ROLE, STACKTREE_FRAME };

typedef VEC(uint32_t) member_vec;

struct stacktree_node {
	enum stacktree_kind kind;
	uint32_t parent, first_child, next; /* UINT32_MAX: none; siblings: the largest first */
	uint32_t label;			    /* in `labels` */
	uint32_t depth, child_cnt;
	size_t threads;	    /* that pass through this node */
	size_t ends, moved; /* threads whose innermost frame it is; of those that moved */
	member_vec members; /* indexes of processes, ascending */
};

struct stacktree {
	const struct stacks_process *const *processes;
	size_t cnt;
	bool by_rank; /* members are named by rank, else by pid */
	struct strtab labels;
	VEC(struct stacktree_node) nodes; /* parents before children; the first one is the root */
	struct idmap by_edge;
	size_t dropped; /* frames beyond STACKTREE_NODES_MAX nodes */
};

enum { STACKTREE_NODES_MAX = 1 << 20 };

/* processes[cnt] are borrowed. Returns 0 or -ENOMEM; stacktree_done() in either case. */
_must_check_ int stacktree_make(struct stacktree *tree,
				const struct stacks_process *const *processes, size_t cnt,
				const struct stackview *view, struct stacknames *names);
void stacktree_done(struct stacktree *tree);

/* Without nodes, for forms that need the processes only. */
static inline struct stacktree stacktree_list(const struct stacks_process *const *processes,
					      size_t cnt)
{
	return (struct stacktree){ .processes = processes, .cnt = cnt };
}

/* "@0,2-7|1": those that have the node, and those that do not. */
void stacktree_append_members(struct str *out, const struct stacktree *tree,
			      const struct stacktree_node *node);

/* "ranks" or "processes". */
const char *stacktree_member_word(const struct stacktree *tree);

/* The tree as text, callers above what they call. The caller checks out. */
void stacktree_text(struct str *out, const struct stacktree *tree);
