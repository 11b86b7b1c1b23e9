/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/clocks.h"

#include "base/stats.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

#define SAME_CLOCK_NS NSEC_PER_MSEC /* two hosts started within this: no */
#define VOTE_CNT 100u		    /* newest events of a key that vote */
#define VOTE_RIVAL_FRAC 0.85	    /* so many votes of the winner's make a rival */

/* Clocks that are further apart are no clocks; sums with times that readers let through can't
 * overflow below that. */
#define APART_MAX_NS (INT64_C(1) << 60)

typedef VEC(int64_t) ns_vec;

/* The events of a rank, sorted. */
struct side {
	struct instance_event *numbered; /* by key and number, each once */
	struct instance_event *others;	 /* by key and end */
	size_t numbered_cnt, other_cnt;
};

const char *align_source_name(enum align_source source)
{
	static const char *const names[] = { "reference", "same clock", "collectives",
					     "wall clock" };

	return names[source];
}

/* --- sorted events --- */

static int by_number(const void *a, const void *b)
{
	const struct instance_event *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int by_end(const void *a, const void *b)
{
	const struct instance_event *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Numbers that a rank has twice say nothing: none of them stays. */
static size_t drop_ambiguous(struct instance_event *events, size_t cnt)
{
	size_t kept = 0;

	for (size_t i = 0, next; i < cnt; i = next) {
		for (next = i + 1; next < cnt && by_number(&events[i], &events[next]) == 0;)
			next++;
		if (next == i + 1)
			events[kept++] = events[i];
	}
	return kept;
}

static int side_init(struct side *side, const struct align_rank *rank)
{
	*side = (struct side){ 0 };
	side->numbered = calloc(rank->cnt + 1, sizeof(*side->numbered));
	side->others = calloc(rank->cnt + 1, sizeof(*side->others));
	if (side->numbered == NULL || side->others == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rank->cnt; i++) {
		if (rank->events[i].seq >= 0)
			side->numbered[side->numbered_cnt++] = rank->events[i];
		else
			side->others[side->other_cnt++] = rank->events[i];
	}
	qsort(side->numbered, side->numbered_cnt, sizeof(*side->numbered), by_number);
	qsort(side->others, side->other_cnt, sizeof(*side->others), by_end);
	side->numbered_cnt = drop_ambiguous(side->numbered, side->numbered_cnt);
	return 0;
}

static void sides_free(struct side *sides, size_t cnt)
{
	for (size_t i = 0; sides != NULL && i < cnt; i++) {
		free(sides[i].numbered);
		free(sides[i].others);
	}
	free(sides);
}

static struct side *sides_new(const struct align_rank *ranks, size_t cnt)
{
	struct side *sides = calloc(cnt + 1, sizeof(*sides));

	for (size_t i = 0; sides != NULL && i < cnt; i++) {
		if (side_init(&sides[i], &ranks[i]) < 0) {
			sides_free(sides, cnt);
			return NULL;
		}
	}
	return sides;
}

/* --- differences of ends --- */

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

static int push_diff(ns_vec *diffs, const struct instance_event *placed,
		     const struct instance_event *event)
{
	int64_t diff_ns = placed->end_ns - event->end_ns;

	return distance(diff_ns, 0) <= APART_MAX_NS ? vec_push(diffs, diff_ns) : 0;
}

/* Appends placed - unplaced for each collective that both have by number. */
static int numbered_diffs(const struct side *placed, const struct side *side, ns_vec *ret)
{
	size_t i = 0, k = 0;

	while (i < placed->numbered_cnt && k < side->numbered_cnt) {
		const struct instance_event *a = &placed->numbered[i], *b = &side->numbered[k];
		int order = by_number(a, b);

		if (order == 0 && push_diff(ret, a, b) < 0)
			return -ENOMEM;
		i += order <= 0;
		k += order >= 0;
	}
	return 0;
}

static size_t key_end(const struct side *side, size_t begin)
{
	size_t i = begin;

	while (i < side->other_cnt && side->others[i].key == side->others[begin].key)
		i++;
	return i;
}

/* All pairs of the newest of one key. Returns how many of them can be one, or -ENOMEM. */
static int add_votes(const struct instance_event *a, size_t a_cnt, const struct instance_event *b,
		     size_t b_cnt, ns_vec *votes)
{
	size_t a_new = MIN(a_cnt, (size_t)VOTE_CNT), b_new = MIN(b_cnt, (size_t)VOTE_CNT);

	for (size_t i = a_cnt - a_new; i < a_cnt; i++) {
		for (size_t k = b_cnt - b_new; k < b_cnt; k++) {
			if (push_diff(votes, &a[i], &b[k]) < 0)
				return -ENOMEM;
		}
	}
	return (int)MIN(a_new, b_new);
}

/* ret_common: how many votes the true offset has when nothing is missing. */
static int collect_votes(const struct side *placed, const struct side *side, ns_vec *votes,
			 size_t *ret_common)
{
	size_t i = 0, k = 0, common = 0;

	while (i < placed->other_cnt && k < side->other_cnt) {
		const struct instance_event *a = &placed->others[i], *b = &side->others[k];
		size_t a_cnt = key_end(placed, i) - i, b_cnt = key_end(side, k) - k;

		if (a->key == b->key) {
			int most = add_votes(a, a_cnt, b, b_cnt, votes);

			if (most < 0)
				return most;
			common += (size_t)most;
		}
		i += a->key <= b->key ? a_cnt : 0;
		k += b->key <= a->key ? b_cnt : 0;
	}
	*ret_common = common;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* So far apart may votes of one ballot lie: exact ends first, then those that waver. */
static const int64_t vote_widths_ns[] = { 2 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC };

/* Sorted votes [first, first + cnt) that lie within a width. */
struct ballot {
	size_t first, cnt;
};

static size_t ballot_at(const ns_vec *votes, size_t first, size_t end, int64_t width_ns)
{
	while (end < votes->cnt && votes->data[end] - votes->data[first] <= width_ns)
		end++;
	return end;
}

/* The fullest ballot; of rivals the one nearest to what the wall clocks say. */
static struct ballot count_votes(const ns_vec *votes, int64_t wall_ns, int64_t width_ns)
{
	struct ballot best = { 0, 0 }, chosen;
	size_t end = 0;

	for (size_t i = 0; i < votes->cnt; i++) {
		end = ballot_at(votes, i, end, width_ns);
		if (end - i > best.cnt)
			best = (struct ballot){ i, end - i };
	}
	chosen = best;
	end = 0;
	for (size_t i = 0; i < votes->cnt; i++) {
		int64_t gain = distance(votes->data[chosen.first], wall_ns) -
			       distance(votes->data[i], wall_ns);

		end = ballot_at(votes, i, end, width_ns);
		if ((double)(end - i) < VOTE_RIVAL_FRAC * (double)best.cnt)
			continue;
		/* Ballots of one peak overlap: there the fuller one wins. */
		if (gain > width_ns || (gain > -width_ns && end - i > chosen.cnt))
			chosen = (struct ballot){ i, end - i };
	}
	return chosen;
}

/*
 * Ranks of different groups have collectives of one name, but not one peak: most must
 * agree, and in a wide ballot more than chance puts into it. Votes of all pairs lie in a
 * triangle, so chance puts up to twice the mean there.
 */
static bool is_elected(const ns_vec *votes, struct ballot won, size_t common, int64_t width_ns)
{
	double range_ns = (double)(votes->data[votes->cnt - 1] - votes->data[0]);
	double chance = 2 * (double)votes->cnt * (double)width_ns;

	return 2 * won.cnt >= common &&
	       (width_ns == vote_widths_ns[0] || (double)won.cnt * range_ns >= 2 * chance);
}

static int elect(const ns_vec *votes, size_t common, int64_t wall_ns, ns_vec *ret)
{
	for (size_t w = 0; w < ARRAY_SIZE(vote_widths_ns); w++) {
		struct ballot won = count_votes(votes, wall_ns, vote_widths_ns[w]);
		int error = 0;

		if (!is_elected(votes, won, common, vote_widths_ns[w]))
			continue;
		for (size_t i = 0; i < won.cnt && error == 0; i++)
			error = vec_push(ret, votes->data[won.first + i]);
		return error;
	}
	return 0;
}

static int voted_diffs(const struct side *placed, const struct side *side, int64_t wall_ns,
		       ns_vec *ret)
{
	ns_vec votes = { 0 };
	size_t common = 0;
	int error = collect_votes(placed, side, &votes, &common);

	if (error == 0 && votes.cnt > 0) {
		qsort(votes.data, votes.cnt, sizeof(*votes.data), by_value);
		error = elect(&votes, common, wall_ns, ret);
	}
	vec_done(&votes);
	return error;
}

/* --- from differences to offsets --- */

/* Differences may be years, which a double does not hold to the ns: the first is taken off. */
static int settle(const ns_vec *diffs, int64_t base_ns, struct align_clock *ret)
{
	_cleanup_free_ double *values = calloc(diffs->cnt + 1, sizeof(*values));
	double median;

	if (values == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < diffs->cnt; i++)
		values[i] = (double)(diffs->data[i] - diffs->data[0]);
	median = stats_median(values, diffs->cnt);
	base_ns += diffs->data[0] + (int64_t)median;
	*ret = (struct align_clock){
		.source = ALIGN_COLLECTIVES,
		.offset_ns = MAX(MIN(base_ns, APART_MAX_NS), -APART_MAX_NS),
		.spread_ns = (int64_t)stats_mad(values, diffs->cnt, median),
		.match_cnt = diffs->cnt,
	};
	return 0;
}

static int64_t wall_offset(const struct align_rank *to, const struct align_rank *from)
{
	int64_t offset_ns = (from->wall_ns - from->mono_ns) - (to->wall_ns - to->mono_ns);

	return MAX(MIN(offset_ns, APART_MAX_NS), -APART_MAX_NS);
}

static bool same_clock(const struct align_rank *a, const struct align_rank *b)
{
	return a->host != NULL && b->host != NULL && a->host[0] != '\0' &&
	       strcmp(a->host, b->host) == 0 && distance(wall_offset(a, b), 0) < SAME_CLOCK_NS;
}

struct aligner {
	const struct align_rank *ranks;
	size_t cnt;
	struct side *sides;
	struct align_clock *clocks;
	bool *placed;
};

/* All ranks with the same clock go where this one goes. */
static void place(struct aligner *a, size_t rank)
{
	a->placed[rank] = true;
	for (size_t i = 0; i < a->cnt; i++) {
		if (a->placed[i] || !same_clock(&a->ranks[rank], &a->ranks[i]))
			continue;
		a->clocks[i] = a->clocks[rank];
		a->clocks[i].source = ALIGN_SAME_CLOCK;
		a->placed[i] = true;
	}
}

/* Tries to place a rank by what it has in common with one that is placed. Returns 1, 0 or -ENOMEM. */
static int try_pair(struct aligner *a, size_t placed, size_t rank, bool vote)
{
	ns_vec diffs = { 0 };
	int ret = numbered_diffs(&a->sides[placed], &a->sides[rank], &diffs);

	if (ret == 0 && diffs.cnt < ALIGN_MATCH_MIN && vote) {
		diffs.cnt = 0;
		ret = voted_diffs(&a->sides[placed], &a->sides[rank],
				  wall_offset(&a->ranks[placed], &a->ranks[rank]), &diffs);
	}
	if (ret == 0 && diffs.cnt >= ALIGN_MATCH_MIN) {
		ret = settle(&diffs, a->clocks[placed].offset_ns, &a->clocks[rank]);
		if (ret == 0) {
			place(a, rank);
			ret = 1;
		}
	}
	vec_done(&diffs);
	return ret;
}

/* One round over the ranks that have no place yet. Returns how many found one. */
static int try_chain(struct aligner *a)
{
	int found = 0;

	for (size_t r = 0; r < a->cnt; r++) {
		for (size_t p = 1; p < a->cnt && !a->placed[r]; p++) {
			int ret = a->placed[p] ? try_pair(a, p, r, false) : 0;

			if (ret < 0)
				return ret;
			found += ret;
		}
	}
	return found;
}

static int place_all(struct aligner *a)
{
	int ret = 0;

	a->clocks[0] = (struct align_clock){ .source = ALIGN_REFERENCE };
	place(a, 0);
	for (size_t r = 1; r < a->cnt && ret >= 0; r++) {
		if (!a->placed[r])
			ret = try_pair(a, 0, r, true);
	}
	if (ret >= 0) {
		do
			ret = try_chain(a);
		while (ret > 0);
	}
	return ret;
}

void align_by_wall(const struct align_rank *ranks, size_t cnt, struct align_clock *ret)
{
	for (size_t i = 0; i < cnt; i++)
		ret[i] = (struct align_clock){
			.source = i == 0 ? ALIGN_REFERENCE : ALIGN_WALL_CLOCK,
			.offset_ns = wall_offset(&ranks[0], &ranks[i]),
		};
}

int align_clocks(const struct align_rank *ranks, size_t cnt, struct align_clock *ret)
{
	struct aligner a = { .ranks = ranks, .cnt = cnt, .clocks = ret };
	int error = -ENOMEM;

	align_by_wall(ranks, cnt, ret);
	if (cnt == 0)
		return 0;
	a.sides = sides_new(ranks, cnt);
	a.placed = calloc(cnt, sizeof(*a.placed));
	if (a.sides != NULL && a.placed != NULL)
		error = place_all(&a);
	sides_free(a.sides, cnt);
	free(a.placed);
	return error;
}

int align_match(const struct align_rank *ranks, const struct align_clock *clocks, size_t cnt,
		uint32_t *ret_cnt)
{
	_cleanup_free_ struct instance_rank *aligned = calloc(cnt + 1, sizeof(*aligned));

	if (aligned == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		aligned[i] = (struct instance_rank){ ranks[i].events, ranks[i].cnt,
						     clocks[i].offset_ns, clocks[i].spread_ns };
	return instances_find(aligned, cnt, ret_cnt);
}
