/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/handles.h"

#define HOLD_MASK 0xffffu
#define USE_MASK ((UINT64_C(1) << 44) - 1)

/* Added to the uses in handles, so that those of other processes are others. Set once. */
static _Atomic uint64_t salt;

void handle_pool_salt(uint64_t number)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&salt, &none, number & USE_MASK);
}

static uint64_t use_of(uint64_t stamp)
{
	return stamp >> 16;
}

static uint64_t use_of_handle(uint64_t handle)
{
	return ((handle >> 16) - atomic_load_explicit(&salt, memory_order_relaxed)) & USE_MASK;
}

uint64_t handle_pool_take(struct handle_pool *pool, uint64_t owner)
{
	for (uint32_t i = 0; i < HANDLES_PROBES; i++) {
		uint64_t at = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
		uint32_t idx = (uint32_t)(at % pool->cnt);
		struct handle_pool_slot *slot = &pool->slots[idx];
		uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_relaxed);
		uint64_t use = (use_of(stamp) + 1) & USE_MASK;

		if ((stamp & HOLD_MASK) != 0)
			continue;
		if (!atomic_compare_exchange_strong_explicit(&slot->stamp, &stamp, use << 16 | 1,
							     memory_order_acquire,
							     memory_order_relaxed))
			continue;
		atomic_store_explicit(&slot->owner, owner, memory_order_relaxed);
		use = (use + atomic_load_explicit(&salt, memory_order_relaxed)) & USE_MASK;
		return (uint64_t)pool->tag << 60 | use << 16 | idx;
	}
	return 0;
}

/* Adds step to the holders of a handle's slot if that is still in the same use. */
static bool change(struct handle_pool *pool, uint64_t handle, int step)
{
	_Atomic uint64_t *at;
	uint64_t stamp, holders;

	if (!handle_pool_owns(pool, handle))
		return false;
	at = &pool->slots[handle_pool_idx(handle)].stamp;
	stamp = atomic_load_explicit(at, memory_order_relaxed);
	do {
		holders = stamp & HOLD_MASK;
		if (use_of(stamp) != use_of_handle(handle) || (step < 0 && holders == 0) ||
		    (step > 0 && holders == HOLD_MASK))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		at, &stamp, stamp + (uint64_t)step, memory_order_acq_rel, memory_order_relaxed));
	return true;
}

bool handle_pool_hold(struct handle_pool *pool, uint64_t handle)
{
	return change(pool, handle, 1);
}

bool handle_pool_drop(struct handle_pool *pool, uint64_t handle)
{
	return change(pool, handle, -1);
}

bool handle_pool_is_held(const struct handle_pool *pool, uint64_t handle)
{
	uint64_t stamp;

	if (!handle_pool_owns(pool, handle))
		return false;
	stamp = atomic_load_explicit(&pool->slots[handle_pool_idx(handle)].stamp,
				     memory_order_acquire);
	return use_of(stamp) == use_of_handle(handle) && (stamp & HOLD_MASK) != 0;
}

void handle_pool_reclaim(struct handle_pool *pool, uint64_t owner)
{
	for (uint32_t i = 0; i < pool->cnt; i++) {
		struct handle_pool_slot *slot = &pool->slots[i];
		uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);

		/* Another use by now, of another owner, makes the exchange fail. */
		if ((stamp & HOLD_MASK) != 0 &&
		    atomic_load_explicit(&slot->owner, memory_order_relaxed) == owner)
			(void)atomic_compare_exchange_strong(&slot->stamp, &stamp,
							     stamp & ~(uint64_t)HOLD_MASK);
	}
}
