/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stacktree.h"

#include "model/rankset.h"
#include "report/stacks/stackmemo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* What the making of a tree needs. */
struct making {
	const struct stackview *view;
	struct stacknames *names;
	struct stackmemo memo;
};

enum { INDENT = 2, INDENT_MAX = 40 };

void stacktree_done(struct stacktree *tree)
{
	vec_foreach(node, &tree->nodes)
		vec_done(&node->members);
	vec_done(&tree->nodes);
	strtab_done(&tree->labels);
	idmap_done(&tree->by_edge);
}

/* Building. */

static int add_node(struct stacktree *tree, uint32_t parent, enum stacktree_kind kind,
		    uint32_t label, uint32_t *ret)
{
	const struct stacktree_node node = {
		.kind = kind,
		.parent = parent,
		.first_child = NONE,
		.next = NONE,
		.label = label,
		.depth = parent == NONE ? 0 : tree->nodes.data[parent].depth + 1,
	};

	if (vec_push(&tree->nodes, node) < 0)
		return -ENOMEM;
	*ret = (uint32_t)(tree->nodes.cnt - 1);
	if (parent != NONE)
		tree->nodes.data[parent].child_cnt++;
	return 0;
}

/* Counts a thread of a process at a node. */
static int visit(struct stacktree *tree, uint32_t index, uint32_t process)
{
	struct stacktree_node *node = &tree->nodes.data[index];
	const member_vec *members = &node->members;

	node->threads++;
	if (members->cnt > 0 && members->data[members->cnt - 1] == process)
		return 0;
	return vec_push(&node->members, process);
}

/* From *at to its child with that label, which is made if it is new. Returns 0 or -errno. */
static int descend(struct stacktree *tree, uint32_t *at, enum stacktree_kind kind, const char *text,
		   uint32_t process)
{
	const uint32_t label = strtab_intern(&tree->labels, text, strlen(text));
	/* A role is no frame, whatever its name. */
	const uint64_t edge = (uint64_t)*at << 34 | (uint64_t)kind << 32 | label;
	uint32_t child;
	int error = 0;

	if (label == STRTAB_NONE)
		return -ENOMEM;
	child = idmap_get(&tree->by_edge, edge);
	if (child == IDMAP_NONE) {
		if (tree->nodes.cnt >= STACKTREE_NODES_MAX)
			return -ENOSPC;
		error = add_node(tree, *at, kind, label, &child);
		if (error == 0)
			error = idmap_set(&tree->by_edge, edge, child);
	}
	if (error == 0)
		error = visit(tree, child, process);
	if (error == 0)
		*at = child;
	return error;
}

static const char *state_class(const struct stacks_process *process)
{
	switch (process->state) {
	case 'R':
	case 'S':
	case 'I':
		return "running or sleeping";
	case '\0':
		return "not read";
	default:
		return stackstate_word(process->state);
	}
}

static int make_frames(struct stacktree *tree, uint32_t *at, uint32_t process,
		       const struct stacks_thread *thread, struct making *making)
{
	_cleanup_free_ uint32_t *shown = calloc(thread->frame_cnt + 1, sizeof(*shown));
	_cleanup_(str_done) struct str text = { 0 };
	size_t cnt;
	int error = shown != NULL ? 0 : -ENOMEM;

	cnt = shown != NULL ? stackview_pick(making->view, thread, shown) : 0;
	for (size_t i = cnt; i > 0 && error == 0; i--) {
		text.len = 0;
		stackframe_append(&text, making->names, &thread->frames[shown[i - 1]]);
		error = str_error(&text);
		if (error == 0)
			error = descend(tree, at, STACKTREE_FRAME, str_borrow(&text), process);
		if (error == -ENOSPC)
			tree->dropped += i;
	}
	return error;
}

/* The same as make_frames() of a stack that was met before: its nodes up to the role's. */
static int walk_frames(struct stacktree *tree, uint32_t role, uint32_t leaf, uint32_t process)
{
	int error = 0;

	for (uint32_t at = leaf; at != role && error == 0; at = tree->nodes.data[at].parent)
		error = visit(tree, at, process);
	return error;
}

static int add_frames(struct stacktree *tree, uint32_t *at, uint32_t process,
		      const struct stacks_thread *thread, struct making *making)
{
	const uint32_t role = *at;
	const uint64_t hash = stackmemo_hash(thread, role);
	const uint32_t leaf = stackmemo_find(&making->memo, thread, role, hash);
	int error;

	if (leaf != IDMAP_NONE) {
		*at = leaf;
		return walk_frames(tree, role, leaf, process);
	}
	error = make_frames(tree, at, process, thread, making);
	if (error == -ENOSPC)
		return 0; /* not remembered: each such stack counts the frames that it lacks */
	if (error < 0)
		return error;
	return stackmemo_add(&making->memo, hash, &(struct stackmemo_entry){ thread, role, *at });
}

static int add_process(struct stacktree *tree, uint32_t index, struct making *making)
{
	const struct stacks_process *process = tree->processes[index];
	uint32_t state = 0;
	int error = visit(tree, 0, index);

	if (error == 0)
		error = descend(tree, &state, STACKTREE_STATE, state_class(process), index);
	for (size_t i = 0; i < process->thread_cnt && error == 0; i++) {
		const struct stacks_thread *thread = &process->threads[i];
		uint32_t at = state;

		error = descend(tree, &at, STACKTREE_ROLE, thread->role, index);
		if (error == 0)
			error = add_frames(tree, &at, index, thread, making);
		tree->nodes.data[at].ends++;
		tree->nodes.data[at].moved += thread->moved;
	}
	return error;
}

static int compare_ints(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Ranks are names only if all processes have one, and each another one. */
static int find_ranks(struct stacktree *tree)
{
	_cleanup_free_ int *ranks = calloc(tree->cnt + 1, sizeof(*ranks));

	if (ranks == NULL)
		return -ENOMEM;
	tree->by_rank = tree->cnt > 0;
	for (size_t i = 0; i < tree->cnt; i++) {
		ranks[i] = tree->processes[i]->rank;
		tree->by_rank &= ranks[i] >= 0;
	}
	qsort(ranks, tree->cnt, sizeof(*ranks), compare_ints);
	for (size_t i = 1; i < tree->cnt; i++)
		tree->by_rank &= ranks[i] != ranks[i - 1];
	return 0;
}

struct sibling {
	const struct stacktree *tree;
	uint32_t index;
};

/* The main thread first, then what most have; equal ones by their text. */
static int by_size(const void *a, const void *b)
{
	const struct sibling *left = a, *right = b;
	const struct stacktree *tree = left->tree;
	const struct stacktree_node *x = &tree->nodes.data[left->index];
	const struct stacktree_node *y = &tree->nodes.data[right->index];
	const char *x_text = strtab_text(&tree->labels, x->label);
	const char *y_text = strtab_text(&tree->labels, y->label);
	const bool x_main = x->kind == STACKTREE_ROLE && strcmp(x_text, "main") == 0;
	const bool y_main = y->kind == STACKTREE_ROLE && strcmp(y_text, "main") == 0;

	if (x_main != y_main)
		return x_main ? -1 : 1;
	if (x->members.cnt != y->members.cnt)
		return x->members.cnt > y->members.cnt ? -1 : 1;
	if (x->threads != y->threads)
		return x->threads > y->threads ? -1 : 1;
	return strcmp(x_text, y_text);
}

static int by_parent(const void *a, const void *b)
{
	const struct sibling *left = a, *right = b;
	const uint32_t x = left->tree->nodes.data[left->index].parent;
	const uint32_t y = right->tree->nodes.data[right->index].parent;

	return x != y ? (x > y) - (x < y) : by_size(a, b);
}

/* Links the children of each node, the largest first. */
static int link_children(struct stacktree *tree)
{
	const size_t cnt = tree->nodes.cnt;
	struct stacktree_node *nodes = tree->nodes.data;
	_cleanup_free_ struct sibling *order = calloc(cnt, sizeof(*order));

	if (order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		order[i] = (struct sibling){ tree, (uint32_t)i };
	qsort(order + 1, cnt - 1, sizeof(*order), by_parent);
	for (size_t i = cnt - 1; i > 0; i--) {
		struct stacktree_node *node = &nodes[order[i].index];

		node->next = nodes[node->parent].first_child;
		nodes[node->parent].first_child = order[i].index;
	}
	return 0;
}

int stacktree_make(struct stacktree *tree, const struct stacks_process *const *processes,
		   size_t cnt, const struct stackview *view, struct stacknames *names)
{
	struct making making = { .view = view, .names = names };
	uint32_t root;
	int error;

	*tree = (struct stacktree){ .processes = processes, .cnt = cnt };
	error = strtab_init(&tree->labels);
	if (error == 0)
		error = add_node(tree, NONE, STACKTREE_ROOT, 0, &root);
	for (size_t i = 0; i < cnt && error == 0; i++)
		error = add_process(tree, (uint32_t)i, &making);
	stackmemo_done(&making.memo);
	if (error == 0)
		error = find_ranks(tree);
	return error == 0 ? link_children(tree) : error;
}

/* Sets of processes. */

const char *stacktree_member_word(const struct stacktree *tree)
{
	return tree->by_rank ? "ranks" : "processes";
}

/* The numbers of the processes that have the node, or of those that do not. */
static void append_set(struct str *out, const struct stacktree *tree,
		       const struct stacktree_node *node, bool missing)
{
	_cleanup_free_ int *numbers = calloc(tree->cnt + 1, sizeof(*numbers));
	size_t cnt = 0, next = 0;
	bool sorted = true;

	if (numbers == NULL) {
		out->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < tree->cnt; i++) {
		const struct stacks_process *process = tree->processes[i];
		const bool has = next < node->members.cnt && node->members.data[next] == i;

		next += has;
		if (has == missing)
			continue;
		numbers[cnt] = tree->by_rank ? process->rank : (int)process->pid;
		sorted &= cnt == 0 || numbers[cnt] >= numbers[cnt - 1];
		cnt++;
	}
	if (!sorted)
		qsort(numbers, cnt, sizeof(*numbers), compare_ints);
	rankset_format(out, numbers, cnt);
}

void stacktree_append_members(struct str *out, const struct stacktree *tree,
			      const struct stacktree_node *node)
{
	str_append(out, "@");
	append_set(out, tree, node, false);
	if (node->members.cnt == tree->cnt)
		return;
	str_append(out, "|");
	append_set(out, tree, node, true);
}

/* Text. */

/* Written where it differs from the parent's. */
static void append_node(struct str *out, const struct stacktree *tree,
			const struct stacktree_node *node, size_t indent)
{
	const struct stacktree_node *parent = &tree->nodes.data[node->parent];

	str_printf(out, "%*s%s%s", (int)MIN(indent * INDENT, (size_t)INDENT_MAX), "",
		   parent->child_cnt > 1 ? "- " : "  ",
		   node->label != 0 ? strtab_text(&tree->labels, node->label) : "?");
	if (node->members.cnt != parent->members.cnt || node->depth <= 1) {
		str_append(out, "  ");
		stacktree_append_members(out, tree, node);
	}
	if (node->threads != node->members.cnt && (node->threads != parent->threads))
		str_printf(out, "  (%zu threads)", node->threads);
	if (node->moved > 0)
		str_printf(out, "  (%zu of %zu moved)", node->moved, node->ends);
	str_append(out, "\n");
}

void stacktree_text(struct str *out, const struct stacktree *tree)
{
	const struct stacktree_node *nodes = tree->nodes.data;
	_cleanup_free_ size_t *indents = calloc(tree->nodes.cnt, sizeof(*indents));
	uint32_t at = nodes[0].first_child;

	if (indents == NULL) {
		out->error = -ENOMEM;
		return;
	}
	while (at != NONE && at != 0) {
		const struct stacktree_node *node = &nodes[at];

		indents[at] = indents[node->parent] + (nodes[node->parent].child_cnt > 1);
		append_node(out, tree, node, indents[at]);
		if (node->first_child != NONE) {
			at = node->first_child;
			continue;
		}
		while (at != 0 && nodes[at].next == NONE)
			at = nodes[at].parent;
		at = at != 0 ? nodes[at].next : NONE;
	}
	if (tree->dropped > 0)
		str_printf(out, "%zu frames are left out: the tree is too large\n", tree->dropped);
}
