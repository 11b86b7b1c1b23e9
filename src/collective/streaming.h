/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectives of the ranks of one host are one. All have one clock, so that the part
 * before the last member came is waiting, and the part behind it transfer. A collective whose
 * members are not all here, or that they don't all finish, is handed back unmatched.
 * Where a back end reports group and number, these name a collective (stream_add()). Where it
 * doesn't, those of all ranks that are alike are taken in the order of their times, and are one if
 * they overlap, as the parts of one must (stream_add_alike(), stream_settle()).
 * Pure: no clock, no metrics.
 */
#pragma once

#include "base/base.h"

#define STREAM_SLOT_CNT 512u  /* collectives under way; beyond them the oldest are given up */
#define STREAM_MEMBER_MAX 64u /* ranks of a host */
#define STREAM_QUEUE_CNT 64u  /* kinds of collectives without a number */
#define STREAM_QUEUE_MAX 256u
#define STREAM_AGE_NS (60 * NSEC_PER_SEC)

/* One rank's part of a collective. */
struct stream_member {
	void *owner;   /* the rank: it is in a collective once */
	uint32_t what; /* the owner's own */
	uint32_t group_size;
	int64_t start_ns, dur_ns, bytes;
	int64_t known_ns; /* 0: start_ns; else start_ns is only the same end less dur_ns */
};

/* last_start_ns: when the last member came; -1: not all are known. */
typedef void stream_done(void *owner, const struct stream_member *member, int64_t last_start_ns);

struct stream_slot {
	uint64_t key;
	uint32_t cnt; /* 0: free */
	int64_t first_ns;
	struct stream_member members[STREAM_MEMBER_MAX];
};

/* Alike: the oldest of each owner are the next to be one. */
struct stream_queue {
	uint64_t key;
	uint32_t cnt;					/* 0: free */
	struct stream_member members[STREAM_QUEUE_MAX]; /* the oldest first */
};

struct stream {
	stream_done *done;
	struct stream_queue queues[STREAM_QUEUE_CNT];
	struct stream_slot slots[STREAM_SLOT_CNT];
};

/*
 * key: the same on all members of a collective, and on no others of the last minute. Calls
 * done for each member of what is complete, or given up, now. O(STREAM_MEMBER_MAX).
 */
void stream_add(struct stream *stream, uint64_t key, const struct stream_member *member);

/*
 * key: the same for collectives that are alike: operation, payload. group_size: all ranks, who
 * are all here. An owner's members may come in any order until stream_settle(): a back end with
 * several threads (gloo) has them in several rings. O(STREAM_QUEUE_MAX).
 */
void stream_add_alike(struct stream *stream, uint64_t key, const struct stream_member *member);

/*
 * Matches alike members, after all rings of an owner were read. Calls done for each member of what
 * is complete, or has lost its partners. O(STREAM_QUEUE_CNT * STREAM_QUEUE_MAX).
 */
void stream_settle(struct stream *stream);

/* Gives up what began more than STREAM_AGE_NS ago. */
void stream_expire(struct stream *stream, int64_t now_ns);

/* The owner is no more: its parts are taken out, and not handed back. */
void stream_forget(struct stream *stream, const void *owner);
