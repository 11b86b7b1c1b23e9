/* SPDX-License-Identifier: Apache-2.0 */
#include "model/flame/flametree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_node(struct flametree *tree, struct flametree_node node)
{
	return vec_push(&tree->nodes, node);
}

int flametree_init(struct flametree *tree)
{
	int error;

	*tree = (struct flametree){ .dropped = 0 };
	error = strtab_init(&tree->labels);
	if (error == 0)
		error = add_node(tree, (struct flametree_node){ .parent = FLAMETREE_NONE,
								.first_child = FLAMETREE_NONE,
								.next = FLAMETREE_NONE });
	return error;
}

void flametree_done(struct flametree *tree)
{
	vec_foreach(node, &tree->nodes)
		vec_done(&node->members);
	vec_done(&tree->nodes);
	strtab_done(&tree->labels);
	idmap_done(&tree->by_edge);
}

uint32_t flametree_label(struct flametree *tree, const char *text)
{
	return strtab_intern(&tree->labels, text, strlen(text));
}

static int add_member(struct flametree *tree, uint32_t node, uint32_t member)
{
	struct flametree_node *n = &tree->nodes.data[node];

	if (n->members.cnt > 0 && n->members.data[n->members.cnt - 1] == member)
		return 0;
	if (vec_push(&n->members, member) < 0)
		return -ENOMEM;
	tree->member_cnt = MAX(tree->member_cnt, (size_t)member + 1);
	return 0;
}

/* Labels and nodes are below 2^28 each; four kinds. */
static uint64_t edge_of(uint32_t parent, uint32_t label, enum flametree_kind kind)
{
	return (uint64_t)parent << 34 | (uint64_t)label << 2 | kind;
}

uint32_t flametree_child(struct flametree *tree, uint32_t parent, uint32_t label,
			 enum flametree_kind kind, uint32_t member)
{
	const uint64_t edge = edge_of(parent, label, kind);
	uint32_t node = idmap_get(&tree->by_edge, edge);

	if (node == IDMAP_NONE) {
		if (tree->nodes.cnt >= FLAMETREE_NODES_MAX) {
			tree->dropped++;
			return parent;
		}
		node = (uint32_t)tree->nodes.cnt;
		if (add_node(tree,
			     (struct flametree_node){ .parent = parent,
						      .first_child = FLAMETREE_NONE,
						      .next = FLAMETREE_NONE,
						      .label = label,
						      .depth = tree->nodes.data[parent].depth + 1,
						      .kind = (uint8_t)kind }) < 0 ||
		    idmap_set(&tree->by_edge, edge, node) < 0)
			return FLAMETREE_NONE;
	}
	if (add_member(tree, FLAMETREE_ROOT, member) < 0 || add_member(tree, node, member) < 0)
		return FLAMETREE_NONE;
	return node;
}

void flametree_weigh(struct flametree *tree, uint32_t node, double weight)
{
	tree->nodes.data[node].self += weight;
	tree->nodes.data[node].now += weight;
}

void flametree_end_member(struct flametree *tree, uint32_t member)
{
	/* Parents are before children, so sums go up in one pass from the end. */
	for (size_t i = tree->nodes.cnt; i-- > 0;) {
		struct flametree_node *node = &tree->nodes.data[i];

		if (node->now > node->most) {
			node->most = node->now;
			node->most_member = member;
		}
		if (i > 0)
			tree->nodes.data[node->parent].now += node->now;
		node->now = 0;
	}
}

/* A node to be put in front of its siblings. */
struct placed {
	uint32_t node;
	double total;
	const char *text;
};

/* The lightest first, because each is put in front. */
static int by_weight(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int order;

	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	order = strcmp(y->text, x->text);
	return order != 0 ? order : (x->node < y->node) - (x->node > y->node);
}

int flametree_finish(struct flametree *tree)
{
	const size_t cnt = tree->nodes.cnt;
	_cleanup_free_ struct placed *order = calloc(cnt, sizeof(*order));

	if (order == NULL)
		return -ENOMEM;
	vec_foreach(node, &tree->nodes) {
		node->total = node->self;
		node->first_child = node->next = FLAMETREE_NONE;
	}
	for (size_t i = cnt; i-- > 1;)
		tree->nodes.data[tree->nodes.data[i].parent].total += tree->nodes.data[i].total;
	for (size_t i = 0; i < cnt; i++)
		order[i] = (struct placed){ (uint32_t)i, tree->nodes.data[i].total,
					    flametree_text(tree, (uint32_t)i) };
	qsort(order, cnt, sizeof(*order), by_weight);
	for (size_t i = 0; i < cnt; i++) {
		struct flametree_node *node = &tree->nodes.data[order[i].node];

		if (order[i].node == FLAMETREE_ROOT)
			continue;
		node->next = tree->nodes.data[node->parent].first_child;
		tree->nodes.data[node->parent].first_child = order[i].node;
	}
	return 0;
}

uint32_t flametree_next(const struct flametree *tree, uint32_t node)
{
	const struct flametree_node *nodes = tree->nodes.data;

	if (nodes[node].first_child != FLAMETREE_NONE)
		return nodes[node].first_child;
	while (node != FLAMETREE_ROOT && nodes[node].next == FLAMETREE_NONE)
		node = nodes[node].parent;
	return node == FLAMETREE_ROOT ? FLAMETREE_NONE : nodes[node].next;
}
