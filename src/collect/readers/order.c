/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/readers/order.h"

#include "base/vec.h"

#include <errno.h>
#include <string.h>

struct runs {
	VEC(uint32_t) begin; /* first index of each run, and the count at the end */
};

/* Whether event a must come after event b; equal ones keep their file order. */
static bool later(const struct event *events, uint32_t a, uint32_t b)
{
	if (events[a].start_ns != events[b].start_ns)
		return events[a].start_ns > events[b].start_ns;
	if (events[a].dur_ns != events[b].dur_ns)
		return events[a].dur_ns < events[b].dur_ns;
	return a > b;
}

static bool is_sorted(const struct event *events, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		if (later(events, (uint32_t)i - 1, (uint32_t)i))
			return false;
	}
	return true;
}

/*
 * Indexes by lane, in file order within a lane. Writers interleave the events of
 * a stream with the calls that launched them; each lane alone is nearly sorted.
 */
static int order_by_lane(const struct event *events, size_t cnt, uint32_t *order)
{
	size_t lane_cnt = (size_t)UINT16_MAX + 1;
	uint32_t *next = calloc(lane_cnt, sizeof(*next)), at = 0;

	if (next == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		next[events[i].lane]++;
	for (size_t lane = 0; lane < lane_cnt; lane++) {
		uint32_t begin = at;

		at += next[lane];
		next[lane] = begin;
	}
	for (size_t i = 0; i < cnt; i++)
		order[next[events[i].lane]++] = (uint32_t)i;
	free(next);
	return 0;
}

static int runs_find(const struct event *events, const uint32_t *order, size_t cnt,
		     struct runs *runs)
{
	int ret = vec_push(&runs->begin, 0);

	for (size_t i = 1; i < cnt && ret == 0; i++) {
		if (later(events, order[i - 1], order[i]))
			ret = vec_push(&runs->begin, (uint32_t)i);
	}
	return ret == 0 ? vec_push(&runs->begin, (uint32_t)cnt) : ret;
}

/* Merges from[b0, b1) and from[b1, b2) to to[b0, b2). */
static void merge(const struct event *events, const uint32_t *from, uint32_t *to,
		  const size_t bound[static 3])
{
	size_t a = bound[0], b = bound[1], out = bound[0];

	/* The common case of one section of the file after the other. */
	if (!later(events, from[b - 1], from[b])) {
		memcpy(to + a, from + a, (bound[2] - a) * sizeof(*to));
		return;
	}
	while (a < bound[1] && b < bound[2])
		to[out++] = later(events, from[a], from[b]) ? from[b++] : from[a++];
	memcpy(to + out, from + a, (bound[1] - a) * sizeof(*to));
	out += bound[1] - a;
	memcpy(to + out, from + b, (bound[2] - b) * sizeof(*to));
}

/* One round: neighbours are merged two by two. runs shrinks to half. */
static void merge_round(const struct event *events, const uint32_t *from, uint32_t *to,
			struct runs *runs)
{
	uint32_t *begin = runs->begin.data;
	size_t run_cnt = runs->begin.cnt - 1, kept = 0, i = 0;

	for (; i + 1 < run_cnt; i += 2) {
		const size_t bound[3] = { begin[i], begin[i + 1], begin[i + 2] };

		merge(events, from, to, bound);
		begin[kept++] = begin[i];
	}
	if (i < run_cnt) {
		memcpy(to + begin[i], from + begin[i], (begin[i + 1] - begin[i]) * sizeof(*to));
		begin[kept++] = begin[i];
	}
	begin[kept++] = begin[run_cnt];
	runs->begin.cnt = kept;
}

/* Steps of a cycle whose events are fetched ahead: each is a miss of every cache. */
#define AHEAD 8

/* Moves events[order[i]] to events[i], cycle by cycle. order is used up. */
static void apply(struct event *events, uint32_t *order, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		struct event first = events[i];
		size_t hole = i, ahead = i;

		if (order[i] == i)
			continue;
		for (int step = 0; step < AHEAD; step++) {
			ahead = order[ahead];
			__builtin_prefetch(&events[ahead], 1);
		}
		while (order[hole] != i) {
			size_t source = order[hole];

			ahead = order[ahead];
			__builtin_prefetch(&events[ahead], 1);
			events[hole] = events[source];
			order[hole] = (uint32_t)hole;
			hole = source;
		}
		events[hole] = first;
		order[hole] = (uint32_t)hole;
	}
}

/* Sorts order[cnt], with other[cnt] to write to. Returns the sorted one or NULL. */
static uint32_t *sort_runs(const struct event *events, uint32_t *order, uint32_t *other, size_t cnt)
{
	struct runs runs = { 0 };
	int ret = order_by_lane(events, cnt, order);

	if (ret == 0)
		ret = runs_find(events, order, cnt, &runs);
	while (ret == 0 && runs.begin.cnt > 2) {
		uint32_t *swap = order;

		merge_round(events, order, other, &runs);
		order = other;
		other = swap;
	}
	vec_done(&runs.begin);
	return ret == 0 ? order : NULL;
}

int order_events(struct event *events, size_t cnt)
{
	_cleanup_free_ uint32_t *room = NULL;
	uint32_t *order;

	if (cnt >= UINT32_MAX || is_sorted(events, cnt))
		return cnt >= UINT32_MAX ? -EOVERFLOW : 0;
	room = calloc(2, cnt * sizeof(*room));
	if (room == NULL)
		return -ENOMEM;
	order = sort_runs(events, room, room + cnt, cnt);
	if (order == NULL)
		return -ENOMEM;
	apply(events, order, cnt);
	return 0;
}
