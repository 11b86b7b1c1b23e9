/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/desync.h"

#include "base/str.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

/* Whether both entries are numbered by the same counter. */
static bool is_one_count(const struct hang_entered *a, const struct hang_entered *b)
{
	return !a->p2p && !b->p2p && strcmp(a->group, b->group) == 0 && a->by_name == b->by_name &&
	       (!a->by_name || strcmp(a->name, b->name) == 0);
}

const struct hang_entered *desync_entered(const struct desync *desync,
					  const struct hang_record *record)
{
	for (size_t i = 0; i < record->entered_cnt; i++) {
		if (is_one_count(&record->entered[i], desync->front))
			return &record->entered[i];
	}
	return NULL;
}

/* The entries of all workers that are numbered by one counter. */
struct count {
	struct desync found;
	size_t front_cnt; /* members that have entered found.front */
	size_t front_idx; /* worker that found.front is of: the first of them */
	size_t last_idx;  /* worker of the latest member */
};

struct counts {
	struct strtab keys; /* "GROUP" or "GROUP\nNAME"; their ids index `all` */
	VEC(struct count) all;
};

/* Returns the counter's id, STRTAB_NONE: out of memory. */
static uint32_t intern_count(struct strtab *keys, const struct hang_entered *entered)
{
	_cleanup_(str_done) struct str key = { 0 };

	str_printf(&key, "%s%s%s", entered->group, entered->by_name ? "\n" : "",
		   entered->by_name ? entered->name : "");
	return str_error(&key) == 0 ? strtab_intern(keys, str_borrow(&key), key.len) : STRTAB_NONE;
}

/* Returns the counter, added if new. NULL: out of memory. */
static struct count *find_count(struct counts *counts, const struct hang_entered *entered)
{
	uint32_t id = intern_count(&counts->keys, entered);

	while (id != STRTAB_NONE && counts->all.cnt <= id) {
		if (vec_push(&counts->all, (struct count){ .last_idx = SIZE_MAX }) < 0)
			return NULL;
	}
	return id != STRTAB_NONE ? &counts->all.data[id] : NULL;
}

/* Counts a worker's entry. Another entry of the same worker is ignored, as in desync_entered(). */
static void add_member(struct count *count, const struct hang_entered *entered, size_t worker_idx)
{
	const struct hang_entered *front = count->found.front;

	if (count->last_idx == worker_idx)
		return;
	count->last_idx = worker_idx;
	count->found.member_cnt++;
	if (front != NULL && entered->number < front->number)
		return;
	if (front != NULL && entered->number == front->number) {
		count->front_cnt++;
		return;
	}
	count->found.front = entered;
	count->front_idx = worker_idx;
	count->front_cnt = 1;
}

static int count_entries(const struct hang_record *records, size_t cnt, struct counts *counts)
{
	for (size_t i = 0; i < cnt; i++) {
		for (size_t j = 0; j < records[i].entered_cnt; j++) {
			const struct hang_entered *entered = &records[i].entered[j];
			struct count *count;

			if (entered->p2p)
				continue;
			count = find_count(counts, entered);
			if (count == NULL)
				return -ENOMEM;
			add_member(count, entered, i);
		}
	}
	return 0;
}

/* Whether a minority of the members (or one of two) lacks the latest collective. */
static bool lacks_some(const struct count *count)
{
	size_t member_cnt = count->found.member_cnt, behind = member_cnt - count->front_cnt;

	return behind > 0 && (2 * behind < member_cnt || member_cnt == 2);
}

/* Of equally large groups the one whose front is the first is taken. */
static bool is_preferred(const struct count *count, const struct count *to)
{
	if (count->found.member_cnt != to->found.member_cnt)
		return count->found.member_cnt > to->found.member_cnt;
	if (count->front_idx != to->front_idx)
		return count->front_idx < to->front_idx;
	return count->found.front < to->found.front; /* entries of one worker */
}

int desync_find(const struct hang_record *records, size_t cnt, struct desync *ret)
{
	struct counts counts = { .all = { 0 } };
	const struct count *best = NULL;
	int error = strtab_init(&counts.keys);

	if (error == 0)
		error = count_entries(records, cnt, &counts);
	vec_foreach(count, &counts.all) {
		if (lacks_some(count) && (best == NULL || is_preferred(count, best)))
			best = count;
	}
	if (error == 0 && best != NULL)
		*ret = best->found;
	if (error == 0)
		error = best != NULL;
	strtab_done(&counts.keys);
	vec_done(&counts.all);
	return error;
}
