/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/streaming.h"

#define PROBES 8u

static int64_t time_of(const struct stream_member *member)
{
	return member->known_ns != 0 ? member->known_ns : member->start_ns;
}

static void hand_back(struct stream *stream, struct stream_slot *slot, bool complete)
{
	int64_t last_ns = -1;

	for (uint32_t i = 0; complete && i < slot->cnt; i++)
		last_ns = MAX(last_ns, slot->members[i].start_ns);
	for (uint32_t i = 0; i < slot->cnt; i++)
		stream->done(slot->members[i].owner, &slot->members[i], last_ns);
	slot->cnt = 0;
}

/* The slot of this key, else a free one, else that of the oldest, which is given up. */
static struct stream_slot *find_slot(struct stream *stream, uint64_t key)
{
	struct stream_slot *free_slot = NULL, *oldest = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct stream_slot *slot = &stream->slots[(key + i) % STREAM_SLOT_CNT];

		if (slot->cnt > 0 && slot->key == key)
			return slot;
		if (slot->cnt == 0 && free_slot == NULL)
			free_slot = slot;
		if (slot->cnt > 0 && (oldest == NULL || slot->first_ns < oldest->first_ns))
			oldest = slot;
	}
	if (free_slot != NULL)
		return free_slot;
	hand_back(stream, oldest, false);
	return oldest;
}

static bool has_owner(const struct stream_slot *slot, const void *owner)
{
	for (uint32_t i = 0; i < slot->cnt; i++) {
		if (slot->members[i].owner == owner)
			return true;
	}
	return false;
}

void stream_add(struct stream *stream, uint64_t key, const struct stream_member *member)
{
	struct stream_slot *slot;

	if (member->group_size > STREAM_MEMBER_MAX || member->group_size == 0) {
		stream->done(member->owner, member, -1);
		return;
	}
	slot = find_slot(stream, key);
	/* Numbers that come again: a job that was started anew. */
	if (has_owner(slot, member->owner) ||
	    (slot->cnt > 0 && slot->members[0].group_size != member->group_size))
		hand_back(stream, slot, false);
	if (slot->cnt == 0) {
		slot->key = key;
		slot->first_ns = time_of(member);
	}
	slot->members[slot->cnt++] = *member;
	if (slot->cnt == member->group_size)
		hand_back(stream, slot, true);
}

/* --- without numbers --- */

static void take_out(struct stream_queue *queue, uint32_t at, struct stream_member *ret)
{
	*ret = queue->members[at];
	queue->cnt--;
	for (uint32_t i = at; i < queue->cnt; i++)
		queue->members[i] = queue->members[i + 1];
}

static void insert(struct stream_queue *queue, const struct stream_member *member)
{
	uint32_t at = queue->cnt++;

	for (; at > 0 && time_of(&queue->members[at - 1]) > time_of(member); at--)
		queue->members[at] = queue->members[at - 1];
	queue->members[at] = *member;
}

static void give_up(struct stream *stream, struct stream_queue *queue, uint32_t at)
{
	struct stream_member member;

	take_out(queue, at, &member);
	stream->done(member.owner, &member, -1);
}

/* Indices of the oldest of each owner. Returns how many. */
static uint32_t find_heads(const struct stream_queue *queue, uint32_t ret[static STREAM_MEMBER_MAX])
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < queue->cnt && cnt < STREAM_MEMBER_MAX; i++) {
		bool known = false;

		for (uint32_t j = 0; j < cnt && !known; j++)
			known = queue->members[ret[j]].owner == queue->members[i].owner;
		if (!known)
			ret[cnt++] = i;
	}
	return cnt;
}

/*
 * The heads are one collective if the last one to begin did so before the first one ended;
 * else the one that ended first has lost its partners. Returns false when more have to come.
 */
static bool settle_heads(struct stream *stream, struct stream_queue *queue)
{
	uint32_t heads[STREAM_MEMBER_MAX], cnt = find_heads(queue, heads), first = 0;
	int64_t first_end_ns = INT64_MAX, last_start_ns = 0;

	if (queue->cnt == 0 || cnt < queue->members[0].group_size)
		return false;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct stream_member *head = &queue->members[heads[i]];

		last_start_ns = MAX(last_start_ns, head->start_ns);
		if (head->start_ns + head->dur_ns < first_end_ns) {
			first_end_ns = head->start_ns + head->dur_ns;
			first = heads[i];
		}
	}
	if (last_start_ns > first_end_ns) {
		give_up(stream, queue, first);
		return true;
	}
	for (uint32_t i = cnt; i-- > 0;) { /* from behind: the indices before stay */
		struct stream_member member;

		take_out(queue, heads[i], &member);
		stream->done(member.owner, &member, last_start_ns);
	}
	return true;
}

/* NULL: there are too many kinds. */
static struct stream_queue *find_queue(struct stream *stream, uint64_t key)
{
	struct stream_queue *free_queue = NULL;

	for (uint32_t i = 0; i < STREAM_QUEUE_CNT; i++) {
		struct stream_queue *queue = &stream->queues[i];

		if (queue->cnt > 0 && queue->key == key)
			return queue;
		if (queue->cnt == 0 && free_queue == NULL)
			free_queue = queue;
	}
	if (free_queue != NULL)
		free_queue->key = key;
	return free_queue;
}

void stream_add_alike(struct stream *stream, uint64_t key, const struct stream_member *member)
{
	struct stream_queue *queue = find_queue(stream, key);

	if (queue == NULL || member->group_size > STREAM_MEMBER_MAX) {
		stream->done(member->owner, member, -1);
		return;
	}
	if (queue->cnt == STREAM_QUEUE_MAX && !settle_heads(stream, queue))
		give_up(stream, queue, 0);
	queue->key = key;
	insert(queue, member);
}

void stream_settle(struct stream *stream)
{
	for (uint32_t i = 0; i < STREAM_QUEUE_CNT; i++) {
		while (settle_heads(stream, &stream->queues[i]))
			;
	}
}

static void expire_queues(struct stream *stream, int64_t now_ns)
{
	for (uint32_t i = 0; i < STREAM_QUEUE_CNT; i++) {
		struct stream_queue *queue = &stream->queues[i];

		while (queue->cnt > 0 && now_ns - time_of(&queue->members[0]) > STREAM_AGE_NS)
			give_up(stream, queue, 0);
	}
}

static void forget_queued(struct stream_queue *queue, const void *owner)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < queue->cnt; i++) {
		if (queue->members[i].owner != owner)
			queue->members[kept++] = queue->members[i];
	}
	queue->cnt = kept;
}

/* --- both --- */

void stream_expire(struct stream *stream, int64_t now_ns)
{
	expire_queues(stream, now_ns);
	for (uint32_t i = 0; i < STREAM_SLOT_CNT; i++) {
		struct stream_slot *slot = &stream->slots[i];

		if (slot->cnt > 0 && now_ns - slot->first_ns > STREAM_AGE_NS)
			hand_back(stream, slot, false);
	}
}

void stream_forget(struct stream *stream, const void *owner)
{
	for (uint32_t i = 0; i < STREAM_QUEUE_CNT; i++)
		forget_queued(&stream->queues[i], owner);
	for (uint32_t i = 0; i < STREAM_SLOT_CNT; i++) {
		struct stream_slot *slot = &stream->slots[i];
		uint32_t kept = 0;

		for (uint32_t j = 0; j < slot->cnt; j++) {
			if (slot->members[j].owner != owner)
				slot->members[kept++] = slot->members[j];
		}
		slot->cnt = kept;
	}
}
