/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recurs in a sequence of names, as iterations do: of the names that come at equal distances
 * over most of the sequence, the one that does so most rarely. A name that comes twice in each
 * iteration has two distances; a layer's comes more often than what comes once in an iteration.
 */
#pragma once

#include "base/base.h"
#include "base/strtab.h"
#include "base/vec.h"

#define RECURRENCE_MIN 4u /* occurrences */

struct recurrence_item {
	int64_t start_ns;
	uint32_t name; /* string id */
	uint32_t size; /* tells apart what has one name: of a collective; else 0 */
	uint32_t at;   /* filled by recurrence_find(): place in the order of start_ns */
};

typedef VEC(struct recurrence_item) recurrence_vec;

struct recurrence {
	size_t first, cnt; /* in the items after recurrence_find(); cnt 0: nothing recurs */
	uint32_t distance; /* items from one to the next */
};

/*
 * Sorts the items by name, size and place, so that those that are alike are in order. least:
 * distance of occurrences. names: of several that recur alike all workers take the same.
 * O(items log items).
 */
struct recurrence recurrence_find(recurrence_vec *items, uint32_t least,
				  const struct strtab *names);
