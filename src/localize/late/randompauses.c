/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/randompauses.h"

#include "model/thresholds.h"

#include <errno.h>

/* A place on the host that is long on a few workers only. */
static bool is_of_few(const struct accusation *a, size_t worker_cnt)
{
	return a->class == CLASS_HOST && a->worker_cnt * 4 <= worker_cnt;
}

/* Marks the workers that pause anywhere. Returns how many places have workers of their own. */
static size_t strike_apart(const accusations *list, size_t first, size_t worker_cnt, bool *who)
{
	size_t places = 0, overlaps = 0, total = 0;

	for (size_t i = first; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];

		if (!is_of_few(a, worker_cnt))
			continue;
		places++;
		for (size_t k = 0; k < a->worker_cnt; k++) {
			overlaps += who[a->workers[k]];
			total += !who[a->workers[k]];
			who[a->workers[k]] = true;
		}
	}
	return overlaps * 4 <= total ? places : 0;
}

/* Takes the pauses out of the list from first on; the longest of them is returned. */
static struct accusation take_pauses(accusations *list, size_t first, size_t worker_cnt)
{
	struct accusation longest = { .own_ns = -1 };
	size_t kept = first;

	for (size_t i = first; i < list->cnt; i++) {
		struct accusation a = list->data[i];

		if (!is_of_few(&a, worker_cnt))
			list->data[kept++] = a;
		else if (a.own_ns > longest.own_ns)
			longest = a;
	}
	list->cnt = kept;
	return longest;
}

int pauses_join(accusations *list, size_t first, size_t worker_cnt, struct arena *arena)
{
	bool *who = arena_calloc(arena, worker_cnt + 1, sizeof(bool));
	uint32_t *workers = arena_calloc(arena, worker_cnt + 1, sizeof(*workers));
	struct accusation joined;
	size_t places;

	if (who == NULL || workers == NULL)
		return -ENOMEM;
	places = strike_apart(list, first, worker_cnt, who);
	if (places < PAUSE_RANDOM_CNT)
		return 0;
	joined = take_pauses(list, first, worker_cnt);
	joined.rotates = true;
	joined.place_cnt = places;
	joined.workers = workers;
	joined.worker_cnt = 0;
	for (uint32_t w = 0; w < worker_cnt; w++) {
		if (who[w])
			workers[joined.worker_cnt++] = w;
	}
	return vec_push(list, joined);
}
