/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/accounts.h"

#include <errno.h>

#define CLASS_ALL CLASS_CNT /* one account for all classes */

struct book {
	const struct run_tree *runs[2]; /* before, after */
	struct accounts *out;
	struct idmap account_of; /* (node before or after, class) -> account */
};

void accounts_done(struct accounts *accounts)
{
	arena_done(&accounts->arena);
	vec_done(&accounts->list);
	*accounts = (struct accounts){ 0 };
}

/* The node whose account includes this node. */
static uint32_t account_node(const struct run_tree *run, uint32_t node)
{
	const struct run_node *nodes = run->nodes.data;

	while (nodes[node].match == MATCH_NONE && nodes[nodes[node].parent].match != MATCH_SAME)
		node = nodes[node].parent;
	return node;
}

static int open_side(struct book *b, int side, uint32_t node, struct account_side *ret)
{
	size_t cnt = b->runs[side]->window_cnt;

	ret->node = node;
	ret->ms = arena_calloc(&b->out->arena, cnt, sizeof(*ret->ms));
	ret->spread = arena_calloc(&b->out->arena, cnt, sizeof(*ret->spread));
	return ret->ms != NULL && ret->spread != NULL ? 0 : -ENOMEM;
}

/* CHANGE_GREW covers both directions until the sums are known. */
static enum change_kind kind_of(const struct run_node *n, int side)
{
	switch ((enum node_match)n->match) {
	case MATCH_SAME:
		return CHANGE_GREW;
	case MATCH_RENAMED:
		return CHANGE_RENAMED;
	case MATCH_MOVED:
		return CHANGE_MOVED;
	case MATCH_NONE:
		break;
	}
	return side == 0 ? CHANGE_VANISHED : CHANGE_APPEARED;
}

static int open_account(struct book *b, int side, uint32_t node, uint64_t key, uint32_t *ret)
{
	const struct run_node *n = &b->runs[side]->nodes.data[node];
	struct account account = { .kind = kind_of(n, side) };

	*ret = (uint32_t)b->out->list.cnt;
	if (open_side(b, 0, side == 0 ? node : n->partner, &account.before) < 0 ||
	    open_side(b, 1, side == 1 ? node : n->partner, &account.after) < 0 ||
	    idmap_set(&b->account_of, key, *ret) < 0)
		return -ENOMEM;
	return vec_push(&b->out->list, account);
}

/* Partners share the account keyed by the node before; other keys do not collide with it. */
static int find_account(struct book *b, int side, const struct run_cell *cell, uint32_t *ret)
{
	uint32_t node = account_node(b->runs[side], cell->node);
	const struct run_node *n = &b->runs[side]->nodes.data[node];
	uint64_t named = side == 1 && n->match != MATCH_NONE ? n->partner : node;
	uint8_t class = n->match == MATCH_SAME ? cell->class : (uint8_t)CLASS_ALL;
	uint64_t key = named << 9 | (uint64_t)(side == 1 && n->match == MATCH_NONE) << 8 | class;

	*ret = idmap_get(&b->account_of, key);
	return *ret != IDMAP_NONE ? 0 : open_account(b, side, node, key, ret);
}

static int enter_run(struct book *b, int side)
{
	const struct run_tree *run = b->runs[side];

	vec_foreach(cell, &run->cells) {
		struct account_side *s;
		struct account *account;
		uint32_t idx;

		if (find_account(b, side, cell, &idx) < 0)
			return -ENOMEM;
		account = &b->out->list.data[idx];
		s = side == 0 ? &account->before : &account->after;
		s->ms[cell->window] += cell->ms;
		s->spread[cell->window] += cell->deviation_ms;
		s->thread_ms += cell->thread_ms / (double)run->window_cnt;
		account->class_ms[cell->class] += cell->ms + cell->thread_ms;
		if (cell->node == s->node)
			s->runs += cell->runs / (double)run->window_cnt;
	}
	return 0;
}

/* Renamed and moved functions get an account even if only their callees take time. */
static int enter_renamed(struct book *b)
{
	for (uint32_t i = 0; i < b->runs[0]->nodes.cnt; i++) {
		enum node_match match = (enum node_match)b->runs[0]->nodes.data[i].match;
		uint32_t idx;

		if ((match == MATCH_RENAMED || match == MATCH_MOVED) &&
		    find_account(b, 0, &(struct run_cell){ .node = i }, &idx) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Functions of either run in each account; the larger of the two numbers. */
static int count_functions(struct book *b)
{
	for (int side = 0; side < 2; side++) {
		const struct run_tree *run = b->runs[side];
		_cleanup_free_ size_t *below = calloc(run->nodes.cnt, sizeof(*below));

		if (below == NULL)
			return -ENOMEM;
		for (uint32_t i = 0; i < run->nodes.cnt; i++)
			below[account_node(run, i)]++;
		vec_foreach(account, &b->out->list) {
			uint32_t node = side == 0 ? account->before.node : account->after.node;
			size_t cnt = node != NODE_NONE ? below[node] : 0;

			if (account->kind == CHANGE_GREW)
				cnt = 1;
			account->function_cnt = MAX(account->function_cnt, cnt);
		}
	}
	return 0;
}

int accounts_fill(const struct run_tree *before, const struct run_tree *after, struct accounts *ret)
{
	struct book b = { .runs = { before, after }, .out = ret };
	int error;

	*ret = (struct accounts){ 0 };
	arena_init(&ret->arena);
	error = enter_run(&b, 0);
	if (error == 0)
		error = enter_run(&b, 1);
	if (error == 0)
		error = enter_renamed(&b);
	if (error == 0)
		error = count_functions(&b);
	idmap_done(&b.account_of);
	return error;
}
