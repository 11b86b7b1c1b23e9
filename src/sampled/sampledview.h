/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a job laid side by side: which ranks were seen in which round, the stacks of all
 * ranks as places in one tree of calls, and what the training thread is about in each stack.
 */
#pragma once

#include "base/arena.h"
#include "base/idmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "model/sampled/sampledjob.h"

enum sampled_phase {
	PHASE_OTHER,
	PHASE_PEERS,  /* waits for other ranks, in a collective */
	PHASE_LOADER, /* in the DataLoader's __next__ */
	PHASE_BACKWARD,
	PHASE_OPTIMIZER,
	PHASE_CNT,
};

#define SAMPLEDVIEW_ROOT 0u

/* A Python function in its calling context; parents before children. */
struct sampledview_node {
	uint32_t parent, depth;
	const struct stacks_frame *frame; /* of its first sample */
	uint32_t line, votes;		  /* the line of most samples, by Boyer and Moore */
};

struct sampledview_stack {
	uint32_t leaf; /* the innermost Python function; the root: none */
	enum sampled_phase phase;
	bool stage;	/* it waits for one other rank, in send or receive, or is in a pipeline */
	uint64_t place; /* the same for Python frames at the same lines */
};

struct sampledview {
	const struct sampled_job *job;
	struct arena *arena;
	struct strtab names;
	VEC(struct sampledview_node) nodes;
	struct idmap by_edge;
	struct sampledview_stack **stacks;	   /* of each rank */
	const struct sampled_moment *const **grid; /* of each rank, by round; NULL: not seen */
};

/* Returns 0 or -ENOMEM; sampledview_done in either case. */
_must_check_ int sampledview_init(struct sampledview *view, const struct sampled_job *job,
				  struct arena *arena);
void sampledview_done(struct sampledview *view);

/* What a stack is about, by its frames. */
enum sampled_phase sampledview_phase(const struct sampled_stack *stack);

/* The stack of a rank in a round; NULL: it was not seen. */
static inline const struct sampledview_stack *sampledview_at(const struct sampledview *view,
							     size_t rank, size_t round)
{
	const struct sampled_moment *moment = view->grid[rank][round];

	return moment != NULL && moment->stack != SAMPLED_NONE ? &view->stacks[rank][moment->stack]
							       : NULL;
}

/* "train.py(12): read", in the arena. NULL: out of memory. */
const char *sampledview_name(const struct sampledview *view, uint32_t node);

/* Whether the function is the user's, not Python's or a library's. */
bool sampledview_is_users(const struct sampledview *view, uint32_t node);
