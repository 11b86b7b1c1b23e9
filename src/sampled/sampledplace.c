/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampledplace.h"

#include "model/thresholds.h"

#include <errno.h>
#include <string.h>

struct tally {
	double *own, *peers; /* by node: share of the samples of those ranks */
	double *blocked;     /* of own */
	double *workers;     /* by node: samples of the loader's workers */
	double worker_cnt;
	size_t own_cnt, peer_cnt; /* ranks */
};

static bool counts(const struct sampledplace_search *search, enum sampled_phase phase)
{
	return search->phase == PHASE_CNT ? phase != PHASE_PEERS : phase == search->phase;
}

static void add(const struct sampledview *view, uint32_t leaf, double weight, double *ret)
{
	for (uint32_t node = leaf; node != SAMPLEDVIEW_ROOT; node = view->nodes.data[node].parent)
		ret[node] += weight;
	ret[SAMPLEDVIEW_ROOT] += weight;
}

static void tally_rank(const struct sampledview *view, const struct sampledplace_search *search,
		       size_t index, struct tally *tally)
{
	const struct sampled_rank *rank = &view->job->ranks[index];
	const bool own = search->ranks[index];
	const double ranks = (double)MAX(own ? tally->own_cnt : tally->peer_cnt, (size_t)1);
	const double weight = 1.0 / (double)MAX(rank->moment_cnt, (size_t)1) / ranks;

	for (size_t i = 0; i < rank->moment_cnt; i++) {
		const struct sampled_moment *moment = &rank->moments[i];
		const struct sampledview_stack *stack;

		if (moment->stack == SAMPLED_NONE)
			continue;
		stack = &view->stacks[index][moment->stack];
		if (!counts(search, stack->phase))
			continue;
		add(view, stack->leaf, weight, own ? tally->own : tally->peers);
		if (own && moment->state != 'R')
			add(view, stack->leaf, weight, tally->blocked);
		if (!own || stack->phase != PHASE_LOADER)
			continue;
		tally->worker_cnt++;
		if (moment->child_stack != SAMPLED_NONE)
			add(view, view->stacks[index][moment->child_stack].leaf, 1.0,
			    tally->workers);
	}
}

static int tally_all(const struct sampledview *view, const struct sampledplace_search *search,
		     struct tally *ret)
{
	const size_t cnt = view->nodes.cnt;

	*ret = (struct tally){
		.own = arena_calloc(view->arena, cnt, sizeof(double)),
		.peers = arena_calloc(view->arena, cnt, sizeof(double)),
		.blocked = arena_calloc(view->arena, cnt, sizeof(double)),
		.workers = arena_calloc(view->arena, cnt, sizeof(double)),
	};
	if (ret->own == NULL || ret->peers == NULL || ret->blocked == NULL || ret->workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < view->job->cnt; i++) {
		ret->own_cnt += search->ranks[i];
		ret->peer_cnt += !search->ranks[i];
	}
	for (size_t i = 0; i < view->job->cnt; i++)
		if (search->ranks[i] || search->against_others)
			tally_rank(view, search, i, ret);
	return 0;
}

/* The deepest call of which each caller and itself hold at least `least` of own less peers. */
static uint32_t descend(const struct sampledview *view, const double *own, const double *peers,
			double least)
{
	uint32_t at = SAMPLEDVIEW_ROOT;

	for (;;) {
		uint32_t best = at;
		double most = least;

		for (uint32_t i = at + 1; i < view->nodes.cnt; i++) {
			const double excess = own[i] - (peers != NULL ? peers[i] : 0.0);

			if (view->nodes.data[i].parent == at && excess >= most) {
				most = excess;
				best = i;
			}
		}
		if (best == at)
			return at;
		at = best;
	}
}

static bool is_next_of_loader(const struct sampledview *view, uint32_t node)
{
	const struct stacks_frame *frame = view->nodes.data[node].frame;

	return frame != NULL && frame->file != NULL &&
	       strstr(frame->file, "torch/utils/data/dataloader.py") != NULL;
}

/* The user's function nearest above; of a loader none above the loader. */
static uint32_t users_above(const struct sampledview *view, uint32_t deepest, bool *ret_in_loader)
{
	uint32_t user = SAMPLEDVIEW_ROOT;

	*ret_in_loader = false;
	for (uint32_t node = deepest; node != SAMPLEDVIEW_ROOT;
	     node = view->nodes.data[node].parent) {
		if (is_next_of_loader(view, node)) {
			*ret_in_loader = true;
			break;
		}
		if (user == SAMPLEDVIEW_ROOT && sampledview_is_users(view, node))
			user = node;
	}
	if (!*ret_in_loader || user != SAMPLEDVIEW_ROOT)
		return user != SAMPLEDVIEW_ROOT ? user : deepest;
	return deepest;
}

static bool is_inside(const struct sampledview *view, uint32_t node, uint32_t outer)
{
	while (view->nodes.data[node].depth > view->nodes.data[outer].depth)
		node = view->nodes.data[node].parent;
	return node == outer;
}

/* The innermost native function of most samples in the node, by Boyer and Moore. */
static const char *native_leaf(const struct sampledview *view, const bool *ranks, uint32_t node)
{
	const char *ret = "";
	size_t votes = 0;

	for (size_t r = 0; r < view->job->cnt; r++) {
		const struct sampled_rank *rank = &view->job->ranks[r];

		for (size_t i = 0; ranks[r] && i < rank->moment_cnt; i++) {
			const struct sampled_stack *stack;
			const char *name;

			if (rank->moments[i].stack == SAMPLED_NONE ||
			    !is_inside(view, view->stacks[r][rank->moments[i].stack].leaf, node))
				continue;
			stack = &rank->stacks[rank->moments[i].stack];
			name = stack->frames[0].kind == STACKS_NATIVE &&
					       !stack->frames[0].interpreter &&
					       stack->frames[0].function != NULL
				       ? stack->frames[0].function
				       : "";
			if (votes == 0)
				ret = name;
			votes += strcmp(ret, name) == 0 ? 1 : (size_t)-1;
		}
	}
	return ret;
}

int sampledplace_find(const struct sampledview *view, const struct sampledplace_search *search,
		      struct sampledplace *ret)
{
	struct tally tally;
	int error = tally_all(view, search, &tally);

	*ret = (struct sampledplace){ .waits_in = "" };
	if (error < 0)
		return error;
	ret->deepest = descend(view, tally.own, search->against_others ? tally.peers : NULL,
			       search->least_frac);
	if (ret->deepest == SAMPLEDVIEW_ROOT)
		return 0;
	ret->node = users_above(view, ret->deepest, &ret->in_loader);
	ret->own_frac = tally.own[ret->node];
	ret->peers_frac = tally.peers[ret->node];
	ret->blocked_frac = tally.blocked[ret->node] / MAX(ret->own_frac, 1e-9);
	ret->waits_in = native_leaf(view, search->ranks, ret->node);
	if (!ret->in_loader || tally.worker_cnt <= 0)
		return 0;
	ret->worker = descend(view, tally.workers, NULL, tally.worker_cnt * SAMPLED_PLACE_FRAC);
	while (ret->worker != SAMPLEDVIEW_ROOT && !sampledview_is_users(view, ret->worker))
		ret->worker = view->nodes.data[ret->worker].parent;
	/* A forked worker has the callers of its parent: above the loader they are not its own. */
	for (uint32_t node = ret->worker; ret->worker != SAMPLEDVIEW_ROOT;
	     node = view->nodes.data[node].parent) {
		const struct stacks_frame *frame = view->nodes.data[node].frame;

		if (node == SAMPLEDVIEW_ROOT)
			ret->worker = SAMPLEDVIEW_ROOT;
		else if (strstr(frame->file, "torch/utils/data/_utils/fetch.py") != NULL)
			break;
	}
	ret->worker_frac = tally.workers[ret->worker] / tally.worker_cnt;
	return 0;
}
