/* SPDX-License-Identifier: Apache-2.0 */
#include "base/recurrence.h"

#include <stdlib.h>
#include <string.h>

#define GUESSES 4u /* distances that are tried: the first ones may be irregular */

static int by_start(const void *a, const void *b)
{
	const struct recurrence_item *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

static int by_name(const void *a, const void *b)
{
	const struct recurrence_item *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void sort_by_name(recurrence_vec *items)
{
	if (items->cnt == 0)
		return;
	qsort(items->data, items->cnt, sizeof(*items->data), by_start);
	for (size_t i = 0; i < items->cnt; i++)
		items->data[i].at = (uint32_t)i;
	qsort(items->data, items->cnt, sizeof(*items->data), by_name);
}

static bool is_near(uint32_t a, uint32_t b)
{
	uint32_t far = a > b ? a - b : b - a;

	return far <= MAX(a, b) / 20;
}

static bool is_alike(const struct recurrence_item *a, const struct recurrence_item *b)
{
	return a->name == b->name && a->size == b->size;
}

/* The distance that most of items[cnt], which are alike, have from the next one; 0: too few agree. */
static uint32_t common_distance(const struct recurrence_item *items, size_t cnt)
{
	for (size_t guess = 1; guess < MIN(cnt, (size_t)GUESSES); guess++) {
		uint32_t far = items[guess].at - items[guess - 1].at;
		size_t agree = 0;

		for (size_t i = 1; i < cnt; i++)
			agree += is_near(items[i].at - items[i - 1].at, far);
		if (agree * 10 >= (cnt - 1) * 9)
			return far;
	}
	return 0;
}

static bool is_rarer(const recurrence_vec *items, const struct strtab *names,
		     const struct recurrence *a, const struct recurrence *b)
{
	const struct recurrence_item *x = &items->data[a->first], *y = &items->data[b->first];
	int order = strcmp(strtab_text(names, x->name), strtab_text(names, y->name));

	if (!is_near(a->distance, b->distance))
		return a->distance > b->distance;
	return order != 0 ? order < 0 : x->size < y->size;
}

struct recurrence recurrence_find(recurrence_vec *items, uint32_t least, const struct strtab *names)
{
	struct recurrence best = { 0 };

	sort_by_name(items);
	for (size_t i = 0, end; i < items->cnt; i = end) {
		struct recurrence found = { .first = i };

		for (end = i + 1; end < items->cnt && is_alike(&items->data[end], &items->data[i]);
		     end++)
			;
		found.cnt = end - i;
		if (found.cnt < RECURRENCE_MIN)
			continue;
		found.distance = common_distance(&items->data[i], found.cnt);
		if (found.distance < MAX(least, 1u) || found.distance * found.cnt < items->cnt / 2)
			continue;
		if (best.cnt == 0 || is_rarer(items, names, &found, &best))
			best = found;
	}
	return best;
}
