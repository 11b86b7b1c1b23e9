/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/shifts.h"

#include "base/idmap.h"
#include "base/stats.h"
#include "collective/offsets.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SHIFT_NOISE_NS 20000 /* by so much the ends of one collective differ */

static const struct fp_collective *at(const struct shift_list *list, int64_t pos)
{
	return &list->all[list->idx[pos]];
}

static double end_ns(const struct fp_collective *c)
{
	return (double)(c->start_ns + c->dur_ns);
}

/* Mean time from one end to the next: what a wrong shift would be off by. */
static double mean_interval_ns(const struct shift_list *list)
{
	if (list->cnt < 2)
		return 0;
	return fabs(end_ns(at(list, (int64_t)list->cnt - 1)) - end_ns(at(list, 0))) /
	       (double)(list->cnt - 1);
}

/*
 * How well other fits ref at a shift: mean deviation of the differences of their
 * ends, without the worst fifth, because a member can learn late that a collective
 * has ended. A median deviation would be 0 at a wrong shift wherever more than half
 * of the intervals are equal.
 */
struct fit {
	int64_t shift;
	double spread_ns, offset_ns;
	size_t pair_cnt;
};

/* Two lists of one group. */
struct lists {
	const struct shift_list *ref, *other;
	double offset_ns; /* of other's times; NAN: unknown, the clocks differ */
	double *scratch;
};

/* Windows of one host, recorded by PerfTracker: each starts at a known moment of one clock. */
static double known_offset_ns(const struct shift_worker *ref, const struct shift_worker *other)
{
	return ref->clock != 0 && ref->clock == other->clock
		       ? (double)(ref->start_ns - other->start_ns)
		       : (double)NAN;
}

static bool fit_at(const struct lists *lists, int64_t shift, struct fit *ret)
{
	const struct shift_list *ref = lists->ref, *other = lists->other;
	double *scratch = lists->scratch;
	size_t pairs = 0, same = 0, kept;
	double center, sum = 0;

	for (int64_t k = 0; k < (int64_t)other->cnt; k++) {
		const struct fp_collective *a, *b = at(other, k);

		if (k + shift < 0 || k + shift >= (int64_t)ref->cnt)
			continue;
		a = at(ref, k + shift);
		same += a->name == b->name;
		scratch[pairs++] = end_ns(b) - end_ns(a);
	}
	if (pairs == 0 || (double)same < SHIFT_NAME_AGREE * (double)pairs)
		return false;
	center = isnan(lists->offset_ns) ? stats_median(scratch, pairs) : lists->offset_ns;
	(void)stats_mad(scratch, pairs, center); /* leaves the deviations, sorted */
	kept = pairs - pairs / SHIFT_WORST;
	for (size_t i = 0; i < kept; i++)
		sum += scratch[i];
	*ret = (struct fit){ .shift = shift,
			     .offset_ns = center,
			     .spread_ns = sum / (double)kept,
			     .pair_cnt = pairs };
	return true;
}

/* Sequence numbers, where both have them, leave nothing to guess. */
static bool shift_by_sequence(const struct shift_list *ref, const struct shift_list *other,
			      int64_t *ret)
{
	const struct fp_collective *a = at(ref, 0), *b = at(other, 0);

	if (a->seq < 0 || b->seq < 0 || !a->group_known || !b->group_known)
		return false;
	for (size_t k = 0; k < other->cnt; k++) {
		if (at(other, (int64_t)k)->seq != b->seq + (int64_t)k)
			return false;
	}
	for (size_t k = 0; k < ref->cnt; k++) {
		if (at(ref, (int64_t)k)->seq != a->seq + (int64_t)k)
			return false;
	}
	*ret = b->seq - a->seq;
	return true;
}

/*
 * A small deviation of few pairs may be chance: two intervals that are alike. Of fits that are about
 * as good the one with more pairs is better.
 */
static bool is_better(const struct fit *fit, const struct fit *than)
{
	return (fit->spread_ns + SHIFT_NOISE_NS) * (double)than->pair_cnt <
	       (than->spread_ns + SHIFT_NOISE_NS) * (double)fit->pair_cnt;
}

/* Tries all shifts around "the windows end together". */
static bool best_fit(const struct lists *lists, struct fit *ret)
{
	const struct shift_list *ref = lists->ref, *other = lists->other;
	int64_t by_end = (int64_t)ref->cnt - (int64_t)other->cnt, known;
	size_t need = (size_t)(SHIFT_MIN_PAIRS_FRAC * (double)MIN(ref->cnt, other->cnt));
	bool found = false;

	if (shift_by_sequence(ref, other, &known))
		return fit_at(lists, known, ret);
	for (int64_t d = 0; d <= 2 * SHIFT_MAX; d++) {
		/* 0, -1, 1, -2, 2...: of equal fits the one nearest to the end wins. */
		int64_t shift = by_end + (d % 2 == 1 ? -(d + 1) / 2 : d / 2);
		struct fit fit;

		if (!fit_at(lists, shift, &fit) || fit.pair_cnt < need)
			continue;
		if (!found || is_better(&fit, ret)) {
			*ret = fit;
			found = true;
		}
	}
	return found;
}

/* The lists of one process group, one for each worker that has executions of it. */
struct grouping {
	const struct shift_worker *workers;
	struct arena *arena;
	struct shift_list *lists;
	size_t cnt;
	bool *taken; /* by list */
	double *scratch;
	offset_edges *edges;	       /* gets one for each member, NULL: not asked for */
	const struct offsets *offsets; /* of the workers' clocks, NULL: not known yet */
};

static struct offset_edge edge_of(const struct shift_list *ref, const struct shift_list *other,
				  const struct fit *fit)
{
	return (struct offset_edge){ .a = ref->worker,
				     .b = other->worker,
				     .ns = fit->offset_ns,
				     .spread_ns = fit->spread_ns,
				     .sure = at(ref, 0)->group_known };
}

/* Few pairs agree by chance, and what is known beforehand says nothing new. */
static int add_edge(const struct grouping *g, const struct shift_list *ref,
		    const struct shift_list *other, const struct fit *fit)
{
	if (g->edges == NULL || fit->pair_cnt <= 2 ||
	    !isnan(known_offset_ns(&g->workers[ref->worker], &g->workers[other->worker])))
		return 0;
	return vec_push(g->edges, edge_of(ref, other, fit));
}

static bool fits_group(const struct grouping *g, const struct shift_list *ref,
		       const struct shift_list *other, struct fit *ret)
{
	const struct lists lists = {
		ref, other, known_offset_ns(&g->workers[ref->worker], &g->workers[other->worker]),
		g->scratch
	};

	if (!best_fit(&lists, ret))
		return false;
	if (g->offsets != NULL && ret->pair_cnt > 2 && isnan(lists.offset_ns)) {
		const struct offset_edge edge = edge_of(ref, other, ret);

		if (offsets_contradict(g->offsets, &edge))
			return false;
	}
	return ret->pair_cnt <= 2 || at(ref, 0)->group_known ||
	       ret->spread_ns <= SHIFT_RESIDUAL_SHARE * mean_interval_ns(ref);
}

/* Takes from g->lists all that fit the longest of those left, and makes them a group. */
static int take_group(struct grouping *g, shift_groups *out, uint64_t *unmatched)
{
	struct shift_list *lists = g->lists;
	size_t cnt = g->cnt;
	bool *taken = g->taken;
	struct shift_group group = { 0 };
	const struct shift_list *ref = NULL;

	for (size_t i = 0; i < cnt; i++) {
		if (!taken[i] && (ref == NULL || lists[i].cnt > ref->cnt))
			ref = &lists[i];
	}
	if (ref == NULL)
		return 0;
	group.members = arena_calloc(g->arena, cnt, sizeof(*group.members));
	if (group.members == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct fit fit = { 0 };

		if (taken[i] || (&lists[i] != ref && !fits_group(g, ref, &lists[i], &fit)))
			continue;
		if (&lists[i] != ref && add_edge(g, ref, &lists[i], &fit) < 0)
			return -ENOMEM;
		taken[i] = true;
		lists[i].shift = fit.shift;
		lists[i].offset_ns = fit.offset_ns;
		group.members[group.member_cnt++] = lists[i];
		group.first = MIN(group.first, fit.shift);
		group.last = MAX(group.last, fit.shift + (int64_t)lists[i].cnt - 1);
	}
	if (group.member_cnt < 2) {
		*unmatched += ref->cnt;
		return 1;
	}
	return vec_push(out, group) < 0 ? -ENOMEM : 1;
}

/* g: its lists are set. */
static int add_groups(struct grouping *g, shift_groups *out, uint64_t *unmatched)
{
	_cleanup_free_ bool *taken = calloc(g->cnt + 1, sizeof(*taken));
	_cleanup_free_ double *scratch = NULL;
	size_t longest = 0;
	int ret = 1;

	for (size_t i = 0; i < g->cnt; i++)
		longest = MAX(longest, g->lists[i].cnt);
	scratch = calloc(longest + 1, sizeof(*scratch));
	if (taken == NULL || scratch == NULL)
		return -ENOMEM;
	g->taken = taken;
	g->scratch = scratch;
	while (ret > 0)
		ret = take_group(g, out, unmatched);
	return ret;
}

/* All executions of all workers, by process group, worker and order. */
struct executions {
	uint32_t *worker, *idx;
	size_t *first; /* by group, and the end */
	size_t group_cnt;
};

static void executions_done(struct executions *e)
{
	free(e->worker);
	free(e->idx);
	free(e->first);
}

/* Numbers the process groups by their first execution, and counts the executions of each. */
static int count_groups(const struct shift_worker *workers, size_t cnt, struct idmap *group_of,
			struct executions *e)
{
	VEC(size_t) counts = { 0 };
	size_t sum = 0;
	int error = 0;

	for (size_t w = 0; w < cnt && error == 0; w++) {
		for (size_t i = 0; i < workers[w].cnt && error == 0; i++) {
			uint32_t group = idmap_get(group_of, workers[w].all[i].group);

			if (group == IDMAP_NONE) {
				group = (uint32_t)counts.cnt;
				error = vec_push(&counts, 0);
				if (error == 0)
					error = idmap_set(group_of, workers[w].all[i].group, group);
			}
			if (error == 0 && counts.data != NULL)
				counts.data[group]++;
		}
	}
	e->group_cnt = counts.cnt;
	e->first = calloc(counts.cnt + 1, sizeof(*e->first));
	for (size_t g = 0; g < counts.cnt && e->first != NULL; g++) {
		e->first[g] = sum;
		sum += counts.data[g];
	}
	if (e->first != NULL)
		e->first[counts.cnt] = sum;
	vec_done(&counts);
	return error < 0 || e->first == NULL ? -ENOMEM : 0;
}

static int sort_executions(const struct shift_worker *workers, size_t cnt,
			   const struct idmap *group_of, struct executions *e)
{
	_cleanup_free_ size_t *next = calloc(e->group_cnt + 1, sizeof(*next));

	e->worker = calloc(e->first[e->group_cnt] + 1, sizeof(*e->worker));
	e->idx = calloc(e->first[e->group_cnt] + 1, sizeof(*e->idx));
	if (next == NULL || e->worker == NULL || e->idx == NULL)
		return -ENOMEM;
	memcpy(next, e->first, e->group_cnt * sizeof(*next));
	for (uint32_t w = 0; w < cnt; w++) {
		for (uint32_t i = 0; i < workers[w].cnt; i++) {
			size_t to = next[idmap_get(group_of, workers[w].all[i].group)]++;

			e->worker[to] = w;
			e->idx[to] = i;
		}
	}
	return 0;
}

/* A list for each worker that has executions of a group. */
static int lists_of(const struct shift_worker *workers, const struct executions *e, size_t group,
		    struct arena *arena, struct shift_list **ret, size_t *ret_cnt)
{
	size_t first = e->first[group], end = e->first[group + 1], cnt = 0;
	uint32_t *idx = arena_calloc(arena, end - first + 1, sizeof(*idx));
	struct shift_list *lists;

	for (size_t i = first; i < end; i++)
		cnt += i == first || e->worker[i] != e->worker[i - 1];
	lists = arena_calloc(arena, cnt + 1, sizeof(*lists));
	if (lists == NULL || idx == NULL)
		return -ENOMEM;
	memcpy(idx, e->idx + first, (end - first) * sizeof(*idx));
	*ret = lists;
	*ret_cnt = cnt;
	for (size_t i = first; i < end; i++) {
		uint32_t w = e->worker[i];

		if (i == first || w != e->worker[i - 1])
			*lists++ =
				(struct shift_list){ workers[w].all, w, idx + i - first, 0, 0, 0 };
		lists[-1].cnt++;
	}
	return 0;
}

/* Whether an instance begins on some member no later than so long after the one before it. */
static bool begins_within(const struct shift_group *group, int64_t instance, int64_t ns)
{
	for (size_t m = 0; m < group->member_cnt; m++) {
		const struct fp_collective *c = shift_borrow(&group->members[m], instance);
		const struct fp_collective *before = shift_borrow(&group->members[m], instance - 1);

		if (c != NULL && before != NULL &&
		    c->start_ns < before->start_ns + before->dur_ns + ns)
			return true;
	}
	return false;
}

bool shift_overlaps(const struct shift_group *group, int64_t instance)
{
	return begins_within(group, instance, 0);
}

bool shift_is_queued(const struct shift_group *group, int64_t instance)
{
	return begins_within(group, instance, SHIFT_QUEUED_NS);
}

/* All groups. edges, offsets: as in struct grouping. */
static int find_groups(const struct shift_worker *workers, const struct executions *e,
		       struct arena *arena, offset_edges *edges, const struct offsets *offsets,
		       shift_groups *out, uint64_t *unmatched)
{
	int error = 0;

	*unmatched = 0;
	for (size_t g = 0; g < e->group_cnt && error == 0; g++) {
		struct grouping grouping = {
			.workers = workers, .arena = arena, .edges = edges, .offsets = offsets
		};

		error = lists_of(workers, e, g, arena, &grouping.lists, &grouping.cnt);
		if (error == 0)
			error = add_groups(&grouping, out, unmatched);
	}
	return error;
}

/* Groups of guessed members are found again where steadier ones contradict them. */
static int find_again(const struct shift_worker *workers, size_t cnt, const struct executions *e,
		      struct arena *arena, offset_edges *edges, shift_groups *out,
		      uint64_t *unmatched)
{
	struct offsets offsets = { 0 };
	bool again = false;
	int error = offsets_find(edges, cnt, &offsets);

	for (size_t i = 0; i < edges->cnt && error == 0; i++)
		again = again || offsets_contradict(&offsets, &edges->data[i]);
	if (again) {
		vec_done(out);
		*out = (shift_groups){ 0 };
		error = find_groups(workers, e, arena, NULL, &offsets, out, unmatched);
	}
	offsets_done(&offsets);
	return error;
}

int shifts_find(const struct shift_worker *workers, size_t cnt, struct arena *arena,
		shift_groups *ret, uint64_t *ret_unmatched)
{
	struct executions e = { 0 };
	struct idmap group_of = { 0 };
	offset_edges edges = { 0 };
	shift_groups out = { 0 };
	uint64_t unmatched = 0;
	int error = count_groups(workers, cnt, &group_of, &e);

	if (error == 0)
		error = sort_executions(workers, cnt, &group_of, &e);
	if (error == 0)
		error = find_groups(workers, &e, arena, &edges, NULL, &out, &unmatched);
	if (error == 0)
		error = find_again(workers, cnt, &e, arena, &edges, &out, &unmatched);
	vec_done(&edges);
	idmap_done(&group_of);
	executions_done(&e);
	if (error < 0) {
		vec_done(&out);
		return error;
	}
	*ret = out;
	*ret_unmatched = unmatched;
	return 0;
}
