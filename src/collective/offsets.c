/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/offsets.h"

#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int compare_edges(const void *pa, const void *pb)
{
	const struct offset_edge *a = pa, *b = pb;

	if (a->sure != b->sure)
		return a->sure ? -1 : 1;
	if (a->spread_ns < b->spread_ns || a->spread_ns > b->spread_ns)
		return a->spread_ns < b->spread_ns ? -1 : 1;
	return (a->a > b->a) - (a->a < b->a) != 0 ? (a->a > b->a) - (a->a < b->a)
						  : (a->b > b->b) - (a->b < b->b);
}

/* The workers of a root, by a list: next[w] is another one, UINT32_MAX ends it. */
struct sets {
	uint32_t *next, *last, *cnt;
};

/* Gives the workers of the root `from` the clock and root of `to`. from: the smaller one. */
static void join(struct offsets *o, struct sets *sets, uint32_t to, uint32_t from, double shift_ns)
{
	for (uint32_t w = from; w != UINT32_MAX; w = sets->next[w]) {
		o->workers[w].root = to;
		o->workers[w].ns += shift_ns;
	}
	sets->next[sets->last[to]] = from;
	sets->last[to] = sets->last[from];
	sets->cnt[to] += sets->cnt[from];
	o->spread_ns[to] = MAX(o->spread_ns[to], o->spread_ns[from]);
}

static void use(struct offsets *o, struct sets *sets, const struct offset_edge *edge)
{
	const struct offset_worker *a = &o->workers[edge->a], *b = &o->workers[edge->b];
	const uint32_t root_a = a->root, root_b = b->root;
	/* What b's root is ahead of a's. */
	const double ns = a->ns + edge->ns - b->ns;

	if (root_a == root_b)
		return;
	if (sets->cnt[root_a] >= sets->cnt[root_b]) {
		join(o, sets, root_a, root_b, ns);
		o->spread_ns[root_a] = MAX(o->spread_ns[root_a], edge->spread_ns);
	} else {
		join(o, sets, root_b, root_a, -ns);
		o->spread_ns[root_b] = MAX(o->spread_ns[root_b], edge->spread_ns);
	}
}

int offsets_find(offset_edges *edges, size_t worker_cnt, struct offsets *ret)
{
	_cleanup_free_ uint32_t *next = calloc(worker_cnt + 1, sizeof(*next));
	_cleanup_free_ uint32_t *last = calloc(worker_cnt + 1, sizeof(*last));
	_cleanup_free_ uint32_t *cnt = calloc(worker_cnt + 1, sizeof(*cnt));
	struct sets sets = { next, last, cnt };

	*ret = (struct offsets){ .cnt = worker_cnt };
	ret->workers = calloc(worker_cnt + 1, sizeof(*ret->workers));
	ret->spread_ns = calloc(worker_cnt + 1, sizeof(*ret->spread_ns));
	if (next == NULL || last == NULL || cnt == NULL || ret->workers == NULL ||
	    ret->spread_ns == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < worker_cnt; w++) {
		ret->workers[w].root = last[w] = w;
		next[w] = UINT32_MAX;
		cnt[w] = 1;
	}
	if (edges->cnt > 0)
		qsort(edges->data, edges->cnt, sizeof(*edges->data), compare_edges);
	vec_foreach(edge, edges)
		use(ret, &sets, edge);
	return 0;
}

void offsets_done(struct offsets *offsets)
{
	free(offsets->workers);
	free(offsets->spread_ns);
	*offsets = (struct offsets){ 0 };
}

bool offsets_contradict(const struct offsets *offsets, const struct offset_edge *edge)
{
	const struct offset_worker *a = &offsets->workers[edge->a];
	const struct offset_worker *b = &offsets->workers[edge->b];
	const double known_ns = offsets->spread_ns[a->root];

	if (edge->sure || a->root != b->root)
		return false;
	return edge->spread_ns > OFFSET_LOOSER * (known_ns + OFFSET_NOISE_NS) &&
	       fabs(edge->ns - (b->ns - a->ns)) >
		       OFFSET_LOOSER * (edge->spread_ns + known_ns) + OFFSET_NOISE_NS;
}
