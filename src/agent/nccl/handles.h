/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of things that begin on one thread and end on another, or never. A
 * handle is no address but a number: which slot, and which of its uses. So a
 * handle that is stale, made up, or of another process is found out, whatever
 * NCCL passes us.
 *
 * Slots are used in turn: what is released can be held again until its slot's
 * turn comes, which is how the network finds the collective that it works for
 * after that was queued. All slots busy: the taker gets none. No lock, no
 * allocation; any thread.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define HANDLES_PROBES 8u /* slots that are tried before all count as busy */

/* stamp: use << 16 | how many hold it. owner: whose slots handles_reclaim() takes back. */
struct handles_slot {
	_Atomic uint64_t stamp;
	_Atomic uint64_t owner;
};

struct handles {
	struct handles_slot *slots;
	uint32_t cnt; /* at most 65536 */
	uint32_t tag; /* 1 to 15: handles with another tag belong to another struct handles */
	_Atomic uint64_t next;
};

/*
 * Before the first slot is taken: a number of this process, by which it knows its own handles
 * from those of processes that count alike. Only the first one counts.
 */
void handles_salt(uint64_t number);

/* A slot for the caller alone, held once. Returns its handle, 0 when all slots are busy. */
uint64_t handles_take(struct handles *handles, uint64_t owner);

/* Holds the slot of a handle once more, also when it was released but not used again. */
bool handles_hold(struct handles *handles, uint64_t handle);

/* Lets go of it; the last to do so releases it. False: nobody held it. */
bool handles_drop(struct handles *handles, uint64_t handle);

/* Whether anybody holds the slot of a handle, in the use that the handle is for. */
bool handles_is_held(const struct handles *handles, uint64_t handle);

/* Releases all slots of an owner, whoever holds them. O(slots). */
void handles_reclaim(struct handles *handles, uint64_t owner);

/* Which slot; below handles->cnt for a handle that is held. */
static inline uint32_t handles_idx(uint64_t handle)
{
	return (uint32_t)(handle & 0xffff);
}

static inline bool handles_owns(const struct handles *handles, uint64_t handle)
{
	return handle >> 60 == handles->tag && handles_idx(handle) < handles->cnt;
}
