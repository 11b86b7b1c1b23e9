/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics_match.h"

#define PROBES 8u

static void hand_back(struct match *match, struct match_slot *slot, bool complete)
{
	int64_t last_ns = -1;

	for (uint32_t i = 0; complete && i < slot->cnt; i++)
		last_ns = MAX(last_ns, slot->members[i].start_ns);
	for (uint32_t i = 0; i < slot->cnt; i++)
		match->done(slot->members[i].owner, &slot->members[i], last_ns);
	slot->cnt = 0;
}

/* The slot of this key, else a free one, else that of the oldest, which is given up. */
static struct match_slot *find_slot(struct match *match, uint64_t key)
{
	struct match_slot *free_slot = NULL, *oldest = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct match_slot *slot = &match->slots[(key + i) % MATCH_SLOT_CNT];

		if (slot->cnt > 0 && slot->key == key)
			return slot;
		if (slot->cnt == 0 && free_slot == NULL)
			free_slot = slot;
		if (slot->cnt > 0 && (oldest == NULL || slot->first_ns < oldest->first_ns))
			oldest = slot;
	}
	if (free_slot != NULL)
		return free_slot;
	hand_back(match, oldest, false);
	return oldest;
}

static bool has_owner(const struct match_slot *slot, const void *owner)
{
	for (uint32_t i = 0; i < slot->cnt; i++) {
		if (slot->members[i].owner == owner)
			return true;
	}
	return false;
}

void match_add(struct match *match, uint64_t key, const struct match_member *member)
{
	struct match_slot *slot;

	if (member->group_size > MATCH_MEMBER_MAX || member->group_size == 0) {
		match->done(member->owner, member, -1);
		return;
	}
	slot = find_slot(match, key);
	/* Numbers that come again: a job that was started anew. */
	if (has_owner(slot, member->owner) ||
	    (slot->cnt > 0 && slot->members[0].group_size != member->group_size))
		hand_back(match, slot, false);
	if (slot->cnt == 0) {
		slot->key = key;
		slot->first_ns = member->start_ns;
	}
	slot->members[slot->cnt++] = *member;
	if (slot->cnt == member->group_size)
		hand_back(match, slot, true);
}

void match_expire(struct match *match, int64_t now_ns)
{
	for (uint32_t i = 0; i < MATCH_SLOT_CNT; i++) {
		struct match_slot *slot = &match->slots[i];

		if (slot->cnt > 0 && now_ns - slot->first_ns > MATCH_AGE_NS)
			hand_back(match, slot, false);
	}
}

void match_forget(struct match *match, const void *owner)
{
	for (uint32_t i = 0; i < MATCH_SLOT_CNT; i++) {
		struct match_slot *slot = &match->slots[i];
		uint32_t kept = 0;

		for (uint32_t j = 0; j < slot->cnt; j++) {
			if (slot->members[j].owner != owner)
				slot->members[kept++] = slot->members[j];
		}
		slot->cnt = kept;
	}
}
