/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of events that begin on one thread and end on another, or never. A handle is a number,
 * not an address: slot and use count. So a stale or invalid handle, or one of another process, is
 * detected for any value that NCCL passes.
 *
 * Slots are used in turn: a released slot can be held again until its turn comes, so network events
 * find their collective after it was queued. All slots busy: handle_pool_take() returns 0. No lock, no
 * allocation; any thread.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define HANDLES_PROBES 8u /* slots tried before all count as busy */

/* stamp: use << 16 | number of holders. owner: for handle_pool_reclaim(). */
struct handle_pool_slot {
	_Atomic uint64_t stamp;
	_Atomic uint64_t owner;
};

struct handle_pool {
	struct handle_pool_slot *slots;
	uint32_t cnt; /* at most 65536 */
	uint32_t tag; /* 1 to 15: handles with another tag belong to another struct handle_pool */
	_Atomic uint64_t next;
};

/*
 * Before the first slot is taken: a number of this process that distinguishes its handles from
 * those of other processes. Only the first call has an effect.
 */
void handle_pool_salt(uint64_t number);

/* A slot for the caller alone, held once. Returns its handle, 0 when all slots are busy. */
uint64_t handle_pool_take(struct handle_pool *pool, uint64_t owner);

/* Holds the slot of a handle once more, also when it was released but not reused. */
bool handle_pool_hold(struct handle_pool *pool, uint64_t handle);

/* Drops one hold; the last one releases the slot. False: it was not held. */
bool handle_pool_drop(struct handle_pool *pool, uint64_t handle);

/* Whether the slot of a handle is held, in the handle's use. */
bool handle_pool_is_held(const struct handle_pool *pool, uint64_t handle);

/* Releases all slots of an owner, regardless of holders. O(slots). */
void handle_pool_reclaim(struct handle_pool *pool, uint64_t owner);

/* Which slot; below pool->cnt for a handle that is held. */
static inline uint32_t handle_pool_idx(uint64_t handle)
{
	return (uint32_t)(handle & 0xffff);
}

static inline bool handle_pool_owns(const struct handle_pool *pool, uint64_t handle)
{
	return handle >> 60 == pool->tag && handle_pool_idx(handle) < pool->cnt;
}
