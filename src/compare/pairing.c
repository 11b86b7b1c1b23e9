/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/pairing.h"

#include "compare/alike.h"
#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ALIKE_LEAST 0.5	   /* similarity of names of a renamed function */
#define RUNS_CLOSE 0.8	   /* ratio of executions of the same work */
#define TIME_CLOSE 0.7	   /* ratio of times of the same work */
#define WEIGHT_LEAST 0.001 /* of an iteration: the listing threshold of fingerprints */
#define COVER_LEAST 0.8	   /* of a subtree: the remainder is a new frame only */
#define PAIRS_MAX 1000000  /* maximum number of candidates at one place */
#define TWINS_MAX 256	   /* functions of one name examined for a move */

struct pair {
	uint32_t a, b;
};

struct candidate {
	struct pair pair;
	double score;
};

typedef VEC(uint32_t) node_list;

struct aligner {
	struct run_tree *a, *b;
	VEC(struct pair) pairs; /* matched callers, whose callees are to be paired */
	VEC(struct candidate) candidates;
	node_list left_a, left_b; /* callees of one pair without a partner */
	struct str part;
};

enum rename_rule { RENAME_ALIKE, RENAME_ONLY };

static struct run_node *node_a(const struct aligner *al, uint32_t i)
{
	return &al->a->nodes.data[i];
}

static struct run_node *node_b(const struct aligner *al, uint32_t i)
{
	return &al->b->nodes.data[i];
}

static int join(struct aligner *al, struct pair pair, enum node_match match)
{
	node_a(al, pair.a)->partner = pair.b;
	node_b(al, pair.b)->partner = pair.a;
	node_a(al, pair.a)->match = node_b(al, pair.b)->match = (uint8_t)match;
	return vec_push(&al->pairs, pair);
}

/* 1: the same, 0: nothing in common; 1 for two zeros. */
static double closeness(double a, double b)
{
	return a + b > 0 ? MIN(a, b) / MAX(a, b) : 1;
}

static bool is_kernel(const struct run_node *n)
{
	return n->kind == KIND_KERNEL || n->kind == KIND_GPU_MEMOP;
}

static double weight(const struct run_node *n)
{
	return n->tree_ms + n->tree_thread_ms;
}

/* --- the same name below the same callers --- */

/* The key of child, a function of run a, if it were below node b. */
static int key_below(struct aligner *al, const struct run_node *child, uint32_t b,
		     struct funckey *ret)
{
	const struct funckey *parent = b == NODE_ROOT ? NULL : &node_b(al, b)->key;

	al->part.len = 0;
	funckey_part((enum event_kind)child->kind, child->name, &al->part);
	*ret = funckey_under(parent, str_borrow(&al->part));
	return str_error(&al->part);
}

static int pair_identical(struct aligner *al, struct pair up)
{
	bool one_stack = (up.a == NODE_ROOT && up.b == NODE_ROOT) ||
			 funckey_equal(node_a(al, up.a)->key, node_b(al, up.b)->key);

	for (uint32_t a = node_a(al, up.a)->first_child; a != NODE_NONE;
	     a = node_a(al, a)->next_sibling) {
		struct funckey key = node_a(al, a)->key;
		int error = one_stack ? 0 : key_below(al, node_a(al, a), up.b, &key);
		uint32_t b = run_tree_find(al->b, key);

		if (error == 0 && b != NODE_NONE && node_a(al, a)->match == MATCH_NONE &&
		    node_b(al, b)->match == MATCH_NONE)
			error = join(al, (struct pair){ a, b }, MATCH_SAME);
		if (error < 0)
			return error;
	}
	return 0;
}

/* --- another name at the same place --- */

static int list_left(const struct run_tree *tree, uint32_t parent, node_list *out)
{
	out->cnt = 0;
	for (uint32_t n = tree->nodes.data[parent].first_child; n != NODE_NONE;
	     n = tree->nodes.data[n].next_sibling) {
		if (tree->nodes.data[n].match == MATCH_NONE &&
		    weight(&tree->nodes.data[n]) >= WEIGHT_LEAST * tree->iteration_ms &&
		    vec_push(out, n) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Different kernels may have similar names: executions and launchers must agree, too. */
static bool kernels_fit(const struct run_node *a, const struct run_node *b, bool place_needed)
{
	bool known = a->launched_by != NULL && b->launched_by != NULL;

	if (closeness(a->runs, b->runs) < RUNS_CLOSE)
		return false;
	return known ? strcmp(a->launched_by, b->launched_by) == 0 : !place_needed;
}

/* How well b matches a; negative: not at all. */
static double rename_score(const struct aligner *al, struct pair pair, enum rename_rule rule)
{
	const struct run_node *a = node_a(al, pair.a), *b = node_b(al, pair.b);
	double names = alike_names(a->name, b->name);

	if (a->kind != b->kind || (rule == RENAME_ALIKE && names < ALIKE_LEAST))
		return -1;
	if (is_kernel(a) && !kernels_fit(a, b, rule == RENAME_ONLY))
		return -1;
	/* A root has no caller that could support the match. */
	if (a->parent == NODE_ROOT && !is_kernel(a) &&
	    (rule == RENAME_ONLY || closeness(a->runs, b->runs) < RUNS_CLOSE))
		return -1;
	if (rule == RENAME_ONLY && closeness(weight(a), weight(b)) < TIME_CLOSE)
		return -1;
	return names + closeness(weight(a), weight(b));
}

static int candidate_cmp(const void *p, const void *q)
{
	const struct candidate *x = p, *y = q;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	if (x->pair.a != y->pair.a)
		return x->pair.a < y->pair.a ? -1 : 1;
	return (x->pair.b > y->pair.b) - (x->pair.b < y->pair.b);
}

/* Joins the best candidates first, each node once. */
static int join_candidates(struct aligner *al, enum node_match match)
{
	if (al->candidates.cnt > 0)
		qsort(al->candidates.data, al->candidates.cnt, sizeof(*al->candidates.data),
		      candidate_cmp);
	vec_foreach(c, &al->candidates) {
		if (node_a(al, c->pair.a)->match == MATCH_NONE &&
		    node_b(al, c->pair.b)->match == MATCH_NONE && join(al, c->pair, match) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int pair_renamed(struct aligner *al, struct pair up, enum rename_rule rule)
{
	int error = list_left(al->a, up.a, &al->left_a);

	if (error == 0)
		error = list_left(al->b, up.b, &al->left_b);
	al->candidates.cnt = 0;
	if (error < 0 || (double)al->left_a.cnt * (double)al->left_b.cnt > PAIRS_MAX)
		return error;
	vec_foreach(a, &al->left_a) {
		vec_foreach(b, &al->left_b) {
			struct candidate c = { .pair = { *a, *b } };

			c.score = rename_score(al, c.pair, rule);
			if (c.score >= 0 && vec_push(&al->candidates, c) < 0)
				return -ENOMEM;
		}
	}
	/* Without similar names only a single candidate is unambiguous. */
	if (rule == RENAME_ONLY && al->candidates.cnt > 1 && up.a != NODE_ROOT)
		return 0;
	return join_candidates(al, MATCH_RENAMED);
}

/* Pairs everything below the pairs from *next on; the list grows meanwhile. */
static int pair_below(struct aligner *al, size_t next)
{
	for (; next < al->pairs.cnt; next++) {
		struct pair up = al->pairs.data[next];
		int error = pair_identical(al, up);

		if (error == 0)
			error = pair_renamed(al, up, RENAME_ALIKE);
		if (error < 0)
			return error;
	}
	return 0;
}

/* --- the same name elsewhere --- */

/* The outermost caller without a partner. */
static uint32_t top_of(const struct run_tree *tree, uint32_t node)
{
	while (tree->nodes.data[tree->nodes.data[node].parent].match == MATCH_NONE)
		node = tree->nodes.data[node].parent;
	return node;
}

static bool same_name(const struct run_node *a, const struct run_node *b)
{
	return a->name_hash == b->name_hash;
}

/* Number of common callers, from the innermost on, plus the closeness of the times. */
static double move_score(const struct aligner *al, struct pair pair)
{
	double score = closeness(weight(node_a(al, pair.a)), weight(node_b(al, pair.b)));
	uint32_t a = node_a(al, pair.a)->parent, b = node_b(al, pair.b)->parent;

	while (a != NODE_ROOT && b != NODE_ROOT && same_name(node_a(al, a), node_b(al, b))) {
		a = node_a(al, a)->parent;
		b = node_b(al, b)->parent;
		score += 1;
	}
	return score;
}

static bool may_move(const struct run_tree *tree, uint32_t node)
{
	const struct run_node *n = &tree->nodes.data[node];

	return n->match == MATCH_NONE && !is_kernel(n) &&
	       weight(n) >= WEIGHT_LEAST * tree->iteration_ms;
}

/* Nodes of run b that may have moved, grouped by name: a list through next[]. */
struct twins {
	struct idmap first; /* name_hash -> node */
	uint32_t *next;	    /* by node */
};

static int find_twins(const struct aligner *al, struct twins *twins)
{
	twins->next = calloc(al->b->nodes.cnt + 1, sizeof(*twins->next));
	if (twins->next == NULL)
		return -ENOMEM;
	for (uint32_t i = (uint32_t)al->b->nodes.cnt; i > 1; i--) {
		uint64_t hash = node_b(al, i - 1)->name_hash;

		if (!may_move(al->b, i - 1))
			continue;
		twins->next[i - 1] = idmap_get(&twins->first, hash);
		if (idmap_set(&twins->first, hash, i - 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int list_moves(struct aligner *al, const struct twins *twins)
{
	for (uint32_t a = 1; a < al->a->nodes.cnt; a++) {
		uint32_t b = IDMAP_NONE;

		if (may_move(al->a, a))
			b = idmap_get(&twins->first, node_a(al, a)->name_hash);
		for (size_t i = 0; b != IDMAP_NONE && i < TWINS_MAX; i++, b = twins->next[b]) {
			struct candidate c = { .pair = { a, b } };

			c.score = move_score(al, c.pair);
			if (same_name(node_a(al, a), node_b(al, b)) &&
			    vec_push(&al->candidates, c) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Keeps the best candidate of each node, outermost functions only: their callees move with them.
 * chosen_*: by node, whether it or a caller is chosen.
 */
static void choose_moves(struct aligner *al, bool *chosen_a, bool *chosen_b)
{
	size_t kept = 0;

	vec_foreach(c, &al->candidates) {
		bool taken = false;

		for (uint32_t n = c->pair.a; n != NODE_ROOT && !taken; n = node_a(al, n)->parent)
			taken = chosen_a[n];
		for (uint32_t n = c->pair.b; n != NODE_ROOT && !taken; n = node_b(al, n)->parent)
			taken = chosen_b[n];
		if (taken)
			continue;
		chosen_a[c->pair.a] = chosen_b[c->pair.b] = true;
		al->candidates.data[kept++] = *c;
	}
	al->candidates.cnt = kept;
}

/* Outer functions before their callees, then by score. */
static int move_cmp(const void *p, const void *q, void *arg)
{
	const struct aligner *al = arg;
	const struct candidate *x = p, *y = q;
	double of_x = weight(node_a(al, x->pair.a)), of_y = weight(node_a(al, y->pair.a));

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return candidate_cmp(p, q);
}

/*
 * Joins only moves that make up nearly all of a removed subtree; otherwise the subtree is reported
 * as removed.
 */
static int join_covering(struct aligner *al, double *cover_a, double *cover_b)
{
	size_t kept = 0;

	vec_foreach(c, &al->candidates) {
		cover_a[top_of(al->a, c->pair.a)] += weight(node_a(al, c->pair.a));
		cover_b[top_of(al->b, c->pair.b)] += weight(node_b(al, c->pair.b));
	}
	vec_foreach(c, &al->candidates) {
		uint32_t a = top_of(al->a, c->pair.a), b = top_of(al->b, c->pair.b);

		if (cover_a[a] >= COVER_LEAST * weight(node_a(al, a)) &&
		    cover_b[b] >= COVER_LEAST * weight(node_b(al, b)))
			al->candidates.data[kept++] = *c;
	}
	al->candidates.cnt = kept;
	return join_candidates(al, MATCH_MOVED);
}

static int pair_moved(struct aligner *al)
{
	_cleanup_free_ bool *chosen_a = calloc(al->a->nodes.cnt, sizeof(*chosen_a));
	_cleanup_free_ bool *chosen_b = calloc(al->b->nodes.cnt, sizeof(*chosen_b));
	_cleanup_free_ double *cover_a = calloc(al->a->nodes.cnt, sizeof(*cover_a));
	_cleanup_free_ double *cover_b = calloc(al->b->nodes.cnt, sizeof(*cover_b));
	struct twins twins = { 0 };
	int error = -ENOMEM;

	al->candidates.cnt = 0;
	if (chosen_a != NULL && chosen_b != NULL && cover_a != NULL && cover_b != NULL)
		error = find_twins(al, &twins);
	if (error == 0)
		error = list_moves(al, &twins);
	if (error == 0 && al->candidates.cnt > 0) {
		qsort_r(al->candidates.data, al->candidates.cnt, sizeof(*al->candidates.data),
			move_cmp, al);
		choose_moves(al, chosen_a, chosen_b);
		error = join_covering(al, cover_a, cover_b);
	}
	free(twins.next);
	idmap_done(&twins.first);
	return error;
}

static int pair_all(struct aligner *al)
{
	int error = join(al, (struct pair){ NODE_ROOT, NODE_ROOT }, MATCH_SAME);
	size_t known;

	if (error == 0)
		error = pair_below(al, 0);
	known = al->pairs.cnt;
	if (error == 0)
		error = pair_moved(al);
	if (error == 0)
		error = pair_below(al, known);
	known = al->pairs.cnt;
	for (size_t i = 0; i < known && error == 0; i++)
		error = pair_renamed(al, al->pairs.data[i], RENAME_ONLY);
	return error == 0 ? pair_below(al, known) : error;
}

int align_runs(struct run_tree *before, struct run_tree *after)
{
	struct aligner al = { .a = before, .b = after };
	int error = pair_all(&al);

	vec_done(&al.pairs);
	vec_done(&al.candidates);
	vec_done(&al.left_a);
	vec_done(&al.left_b);
	str_done(&al.part);
	return error;
}
