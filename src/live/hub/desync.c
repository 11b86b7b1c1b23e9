/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/desync.h"

#include <string.h>

/* Whether both entries are numbered by the same counter. */
static bool is_one_count(const struct wire_entered *a, const struct wire_entered *b)
{
	return strcmp(a->group, b->group) == 0 && a->by_name == b->by_name &&
	       (a->by_name == 0 || strcmp(a->name, b->name) == 0);
}

static const struct wire_entered *find_count(const struct wire_where *where,
					     const struct wire_entered *like)
{
	for (uint32_t i = 0; where != NULL && i < MIN(where->entered_cnt, WIRE_GROUPS); i++) {
		if (is_one_count(&where->entered[i], like))
			return &where->entered[i];
	}
	return NULL;
}

const struct wire_entered *desync_entered(const struct desync *desync,
					  const struct wire_where *where)
{
	return find_count(where, desync->front);
}

/* Whether a minority of that group's members lacks the collective. */
static bool lacks_some(const struct wire_where *const *wheres, size_t cnt, struct desync *group)
{
	size_t behind = 0;

	group->member_cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_entered *entered = desync_entered(group, wheres[i]);

		if (entered != NULL && entered->number > group->front->number)
			return false; /* that entry is tried as front, too */
		group->member_cnt += entered != NULL;
		behind += entered != NULL && entered->number < group->front->number;
	}
	return behind > 0 && (2 * behind < group->member_cnt || group->member_cnt == 2);
}

bool desync_find(const struct wire_where *const *wheres, size_t cnt, struct desync *ret)
{
	bool found = false;

	for (size_t i = 0; i < cnt; i++) {
		size_t entered_cnt =
			wheres[i] != NULL ? MIN(wheres[i]->entered_cnt, WIRE_GROUPS) : 0;

		for (size_t j = 0; j < entered_cnt; j++) {
			struct desync group = { .front = &wheres[i]->entered[j] };

			if (found && is_one_count(group.front, ret->front))
				continue;
			if (lacks_some(wheres, cnt, &group) &&
			    (!found || group.member_cnt > ret->member_cnt)) {
				*ret = group;
				found = true;
			}
		}
	}
	return found;
}
