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

struct pairing {
	struct run_tree *a, *b;
	VEC(struct pair) pairs; /* matched callers, whose callees are to be paired */
	VEC(struct candidate) candidates;
	node_list left_a, left_b; /* callees of one pair without a partner */
	struct str part;
};

enum rename_rule { RENAME_ALIKE, RENAME_ONLY };

static struct run_node *node_a(const struct pairing *p, uint32_t i)
{
	return &p->a->nodes.data[i];
}

static struct run_node *node_b(const struct pairing *p, uint32_t i)
{
	return &p->b->nodes.data[i];
}

static int join(struct pairing *p, struct pair pair, enum node_match match)
{
	node_a(p, pair.a)->partner = pair.b;
	node_b(p, pair.b)->partner = pair.a;
	node_a(p, pair.a)->match = node_b(p, pair.b)->match = (uint8_t)match;
	return vec_push(&p->pairs, pair);
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
static int key_below(struct pairing *p, const struct run_node *child, uint32_t b,
		     struct funckey *ret)
{
	const struct funckey *parent = b == NODE_ROOT ? NULL : &node_b(p, b)->key;

	p->part.len = 0;
	funckey_part((enum event_kind)child->kind, child->name, &p->part);
	*ret = funckey_under(parent, str_borrow(&p->part));
	return str_error(&p->part);
}

static int pair_identical(struct pairing *p, struct pair up)
{
	bool one_stack = (up.a == NODE_ROOT && up.b == NODE_ROOT) ||
			 funckey_equal(node_a(p, up.a)->key, node_b(p, up.b)->key);

	for (uint32_t a = node_a(p, up.a)->first_child; a != NODE_NONE;
	     a = node_a(p, a)->next_sibling) {
		struct funckey key = node_a(p, a)->key;
		int error = one_stack ? 0 : key_below(p, node_a(p, a), up.b, &key);
		uint32_t b = run_tree_find(p->b, key);

		if (error == 0 && b != NODE_NONE && node_a(p, a)->match == MATCH_NONE &&
		    node_b(p, b)->match == MATCH_NONE)
			error = join(p, (struct pair){ a, b }, MATCH_SAME);
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
static double rename_score(const struct pairing *p, struct pair pair, enum rename_rule rule)
{
	const struct run_node *a = node_a(p, pair.a), *b = node_b(p, pair.b);
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
static int join_candidates(struct pairing *p, enum node_match match)
{
	if (p->candidates.cnt > 0)
		qsort(p->candidates.data, p->candidates.cnt, sizeof(*p->candidates.data),
		      candidate_cmp);
	vec_foreach(c, &p->candidates) {
		if (node_a(p, c->pair.a)->match == MATCH_NONE &&
		    node_b(p, c->pair.b)->match == MATCH_NONE && join(p, c->pair, match) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int pair_renamed(struct pairing *p, struct pair up, enum rename_rule rule)
{
	int error = list_left(p->a, up.a, &p->left_a);

	if (error == 0)
		error = list_left(p->b, up.b, &p->left_b);
	p->candidates.cnt = 0;
	if (error < 0 || (double)p->left_a.cnt * (double)p->left_b.cnt > PAIRS_MAX)
		return error;
	vec_foreach(a, &p->left_a) {
		vec_foreach(b, &p->left_b) {
			struct candidate c = { .pair = { *a, *b } };

			c.score = rename_score(p, c.pair, rule);
			if (c.score >= 0 && vec_push(&p->candidates, c) < 0)
				return -ENOMEM;
		}
	}
	/* Without similar names only a single candidate is unambiguous. */
	if (rule == RENAME_ONLY && p->candidates.cnt > 1 && up.a != NODE_ROOT)
		return 0;
	return join_candidates(p, MATCH_RENAMED);
}

/* Pairs everything below the pairs from *next on; the list grows meanwhile. */
static int pair_below(struct pairing *p, size_t next)
{
	for (; next < p->pairs.cnt; next++) {
		struct pair up = p->pairs.data[next];
		int error = pair_identical(p, up);

		if (error == 0)
			error = pair_renamed(p, up, RENAME_ALIKE);
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
static double move_score(const struct pairing *p, struct pair pair)
{
	double score = closeness(weight(node_a(p, pair.a)), weight(node_b(p, pair.b)));
	uint32_t a = node_a(p, pair.a)->parent, b = node_b(p, pair.b)->parent;

	while (a != NODE_ROOT && b != NODE_ROOT && same_name(node_a(p, a), node_b(p, b))) {
		a = node_a(p, a)->parent;
		b = node_b(p, b)->parent;
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

static int find_twins(const struct pairing *p, struct twins *twins)
{
	twins->next = calloc(p->b->nodes.cnt + 1, sizeof(*twins->next));
	if (twins->next == NULL)
		return -ENOMEM;
	for (uint32_t i = (uint32_t)p->b->nodes.cnt; i > 1; i--) {
		uint64_t hash = node_b(p, i - 1)->name_hash;

		if (!may_move(p->b, i - 1))
			continue;
		twins->next[i - 1] = idmap_get(&twins->first, hash);
		if (idmap_set(&twins->first, hash, i - 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int list_moves(struct pairing *p, const struct twins *twins)
{
	for (uint32_t a = 1; a < p->a->nodes.cnt; a++) {
		uint32_t b = IDMAP_NONE;

		if (may_move(p->a, a))
			b = idmap_get(&twins->first, node_a(p, a)->name_hash);
		for (size_t i = 0; b != IDMAP_NONE && i < TWINS_MAX; i++, b = twins->next[b]) {
			struct candidate c = { .pair = { a, b } };

			c.score = move_score(p, c.pair);
			if (same_name(node_a(p, a), node_b(p, b)) &&
			    vec_push(&p->candidates, c) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/*
 * Keeps the best candidate of each node, outermost functions only: their callees move with them.
 * chosen_*: by node, whether it or a caller is chosen.
 */
static void choose_moves(struct pairing *p, bool *chosen_a, bool *chosen_b)
{
	size_t kept = 0;

	vec_foreach(c, &p->candidates) {
		bool taken = false;

		for (uint32_t n = c->pair.a; n != NODE_ROOT && !taken; n = node_a(p, n)->parent)
			taken = chosen_a[n];
		for (uint32_t n = c->pair.b; n != NODE_ROOT && !taken; n = node_b(p, n)->parent)
			taken = chosen_b[n];
		if (taken)
			continue;
		chosen_a[c->pair.a] = chosen_b[c->pair.b] = true;
		p->candidates.data[kept++] = *c;
	}
	p->candidates.cnt = kept;
}

/* Outer functions before their callees, then by score. */
static int move_cmp(const void *m, const void *n, void *arg)
{
	const struct pairing *p = arg;
	const struct candidate *x = m, *y = n;
	double of_x = weight(node_a(p, x->pair.a)), of_y = weight(node_a(p, y->pair.a));

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return candidate_cmp(m, n);
}

/*
 * Joins only moves that make up nearly all of a removed subtree; otherwise the subtree is reported
 * as removed.
 */
static int join_covering(struct pairing *p, double *cover_a, double *cover_b)
{
	size_t kept = 0;

	vec_foreach(c, &p->candidates) {
		cover_a[top_of(p->a, c->pair.a)] += weight(node_a(p, c->pair.a));
		cover_b[top_of(p->b, c->pair.b)] += weight(node_b(p, c->pair.b));
	}
	vec_foreach(c, &p->candidates) {
		uint32_t a = top_of(p->a, c->pair.a), b = top_of(p->b, c->pair.b);

		if (cover_a[a] >= COVER_LEAST * weight(node_a(p, a)) &&
		    cover_b[b] >= COVER_LEAST * weight(node_b(p, b)))
			p->candidates.data[kept++] = *c;
	}
	p->candidates.cnt = kept;
	return join_candidates(p, MATCH_MOVED);
}

static int pair_moved(struct pairing *p)
{
	_cleanup_free_ bool *chosen_a = calloc(p->a->nodes.cnt, sizeof(*chosen_a));
	_cleanup_free_ bool *chosen_b = calloc(p->b->nodes.cnt, sizeof(*chosen_b));
	_cleanup_free_ double *cover_a = calloc(p->a->nodes.cnt, sizeof(*cover_a));
	_cleanup_free_ double *cover_b = calloc(p->b->nodes.cnt, sizeof(*cover_b));
	struct twins twins = { 0 };
	int error = -ENOMEM;

	p->candidates.cnt = 0;
	if (chosen_a != NULL && chosen_b != NULL && cover_a != NULL && cover_b != NULL)
		error = find_twins(p, &twins);
	if (error == 0)
		error = list_moves(p, &twins);
	if (error == 0 && p->candidates.cnt > 0) {
		qsort_r(p->candidates.data, p->candidates.cnt, sizeof(*p->candidates.data),
			move_cmp, p);
		choose_moves(p, chosen_a, chosen_b);
		error = join_covering(p, cover_a, cover_b);
	}
	free(twins.next);
	idmap_done(&twins.first);
	return error;
}

static int pair_all(struct pairing *p)
{
	int error = join(p, (struct pair){ NODE_ROOT, NODE_ROOT }, MATCH_SAME);
	size_t known;

	if (error == 0)
		error = pair_below(p, 0);
	known = p->pairs.cnt;
	if (error == 0)
		error = pair_moved(p);
	if (error == 0)
		error = pair_below(p, known);
	known = p->pairs.cnt;
	for (size_t i = 0; i < known && error == 0; i++)
		error = pair_renamed(p, p->pairs.data[i], RENAME_ONLY);
	return error == 0 ? pair_below(p, known) : error;
}

int pairing_find(struct run_tree *before, struct run_tree *after)
{
	struct pairing p = { .a = before, .b = after };
	int error = pair_all(&p);

	vec_done(&p.pairs);
	vec_done(&p.candidates);
	vec_done(&p.left_a);
	vec_done(&p.left_b);
	str_done(&p.part);
	return error;
}
