/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/missing.h"

#include <string.h>

static const struct wire_entered *find_group(const struct wire_where *where, const char *group)
{
	for (uint32_t i = 0; where != NULL && i < MIN(where->entered_cnt, WIRE_GROUPS); i++) {
		if (strcmp(where->entered[i].group, group) == 0)
			return &where->entered[i];
	}
	return NULL;
}

const struct wire_entered *missing_entered(const struct missing *missing,
					   const struct wire_where *where)
{
	return find_group(where, missing->front->group);
}

/* Whether a minority of that group's members lacks the collective. */
static bool lacks_some(const struct wire_where *const *wheres, size_t cnt, struct missing *group)
{
	size_t behind = 0;

	group->member_cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_entered *entered = missing_entered(group, wheres[i]);

		if (entered != NULL && entered->number > group->front->number)
			return false; /* whoever is farther is looked at in its turn */
		group->member_cnt += entered != NULL;
		behind += entered != NULL && entered->number < group->front->number;
	}
	return behind > 0 && (2 * behind < group->member_cnt || group->member_cnt == 2);
}

bool missing_find(const struct wire_where *const *wheres, size_t cnt, struct missing *ret)
{
	bool found = false;

	for (size_t i = 0; i < cnt; i++) {
		size_t entered_cnt =
			wheres[i] != NULL ? MIN(wheres[i]->entered_cnt, WIRE_GROUPS) : 0;

		for (size_t j = 0; j < entered_cnt; j++) {
			struct missing group = { .front = &wheres[i]->entered[j] };

			if (found && strcmp(group.front->group, ret->front->group) == 0)
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
