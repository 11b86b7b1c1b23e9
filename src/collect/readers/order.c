/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/readers/order.h"

#include "base/vec.h"

#include <errno.h>
#include <string.h>

struct runs {
	VEC(uint32_t) begin; /* first index of each run, and the count at the end */
};

static bool later(const struct event *a, const struct event *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns > b->start_ns;
	return a->dur_ns < b->dur_ns;
}

static int runs_find(const struct event *events, size_t cnt, struct runs *runs)
{
	int ret = vec_push(&runs->begin, 0);

	for (size_t i = 1; i < cnt && ret == 0; i++) {
		if (later(&events[i - 1], &events[i]))
			ret = vec_push(&runs->begin, (uint32_t)i);
	}
	return ret == 0 ? vec_push(&runs->begin, (uint32_t)cnt) : ret;
}

/* Merges from[lo, mid) and from[mid, hi) to to[lo, hi); equal: left first. */
static void merge(const struct event *events, const uint32_t *from, uint32_t *to,
		  const size_t bound[static 3])
{
	size_t a = bound[0], b = bound[1], out = bound[0];

	/* The common case of two threads one after the other. */
	if (!later(&events[from[b - 1]], &events[from[b]])) {
		memcpy(to + a, from + a, (bound[2] - a) * sizeof(*to));
		return;
	}
	while (a < bound[1] && b < bound[2])
		to[out++] = later(&events[from[a]], &events[from[b]]) ? from[b++] : from[a++];
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

/* Moves events[order[i]] to events[i], cycle by cycle. order is used up. */
static void apply(struct event *events, uint32_t *order, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		struct event first = events[i];
		size_t hole = i;

		if (order[i] == i)
			continue;
		while (order[hole] != i) {
			size_t source = order[hole];

			events[hole] = events[source];
			order[hole] = (uint32_t)hole;
			hole = source;
		}
		events[hole] = first;
		order[hole] = (uint32_t)hole;
	}
}

int order_events(struct event *events, size_t cnt)
{
	uint32_t *order = NULL, *other = NULL;
	struct runs runs = { 0 };
	int ret;

	if (cnt >= UINT32_MAX)
		return -ENOMEM;
	ret = runs_find(events, cnt, &runs);
	if (ret == 0 && runs.begin.cnt > 2) {
		order = malloc(cnt * sizeof(*order));
		other = malloc(cnt * sizeof(*other));
		ret = order != NULL && other != NULL ? 0 : -ENOMEM;
	}
	if (ret == 0 && order != NULL) {
		for (size_t i = 0; i < cnt; i++)
			order[i] = (uint32_t)i;
		while (runs.begin.cnt > 2) {
			uint32_t *swap = order;

			merge_round(events, order, other, &runs);
			order = other;
			other = swap;
		}
		apply(events, order, cnt);
	}
	free(order);
	free(other);
	vec_done(&runs.begin);
	return ret;
}
