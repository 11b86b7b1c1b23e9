/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collectives of the ranks of one host are one. All have one clock, so that the part
 * before the last member came is waiting, and the part behind it transfer. A collective whose
 * members are not all here, or that they don't all finish, is handed back unmatched.
 * Where a back end tells group and number, these name a collective (match_add()). Where it
 * doesn't, those of all ranks that are alike are taken in their order, and are one if they
 * overlap, as the parts of one must (match_add_alike()).
 * Pure: no clock, no metrics.
 */
#pragma once

#include "base/base.h"

#define MATCH_SLOT_CNT 512u  /* collectives under way; beyond them the oldest are given up */
#define MATCH_MEMBER_MAX 64u /* ranks of a host */
#define MATCH_QUEUE_CNT 64u  /* kinds of collectives without a number */
#define MATCH_QUEUE_MAX 256u
#define MATCH_AGE_NS (60 * NSEC_PER_SEC)

/* One rank's part of a collective. */
struct match_member {
	void *owner;   /* the rank: nobody is twice in a collective */
	uint32_t what; /* the owner's own */
	uint32_t group_size;
	int64_t start_ns, dur_ns, bytes;
	int64_t known_ns; /* 0: start_ns. Else start_ns is no moment, but the same end less dur_ns */
};

/* last_start_ns: when the last member came; -1: not all are known. */
typedef void match_done(void *owner, const struct match_member *member, int64_t last_start_ns);

struct match_slot {
	uint64_t key;
	uint32_t cnt; /* 0: free */
	int64_t first_ns;
	struct match_member members[MATCH_MEMBER_MAX];
};

/* Alike: the oldest of each owner are the next to be one. */
struct match_queue {
	uint64_t key;
	uint32_t cnt;				      /* 0: free */
	struct match_member members[MATCH_QUEUE_MAX]; /* in the order they came */
};

struct match {
	match_done *done;
	struct match_queue queues[MATCH_QUEUE_CNT];
	struct match_slot slots[MATCH_SLOT_CNT];
};

/*
 * key: the same on all members of a collective, and on no others of the last minute. Calls
 * done for each member of what is complete, or given up, now. O(MATCH_MEMBER_MAX).
 */
void match_add(struct match *match, uint64_t key, const struct match_member *member);

/*
 * key: the same for collectives that are alike: operation, payload. group_size: all ranks, who
 * are all here. O(MATCH_QUEUE_MAX).
 */
void match_add_alike(struct match *match, uint64_t key, const struct match_member *member);

/* Gives up what began more than MATCH_AGE_NS ago. */
void match_expire(struct match *match, int64_t now_ns);

/* The owner is no more: its parts are taken out, and not handed back. */
void match_forget(struct match *match, const void *owner);
