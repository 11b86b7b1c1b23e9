/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/eventmask.h"

#include "agent/nccl/abi.h"

#include <sched.h>

#define COPY_MAX 4u /* of NCCL in one process: one in libtorch and one beside it were seen */
#define WAITS_MAX 1000u

struct copy {
	int *mask;
	uint32_t comm_cnt, network_cnt;
};

/* Written by the holder of `busy`, which is held for a few instructions. */
static struct mask {
	_Atomic bool busy;
	_Atomic int level; /* enum nccl_level; any thread writes it */
	_Atomic bool timing;
	struct copy copies[COPY_MAX];
} mask;

/*
 * False after a while: in a forked child a thread that no longer exists may hold it forever. A mask
 * that was not set is set at the next change.
 */
static bool lock(void)
{
	for (uint32_t i = 0; i < WAITS_MAX; i++) {
		if (!atomic_exchange_explicit(&mask.busy, true, memory_order_acquire))
			return true;
		(void)sched_yield();
	}
	return false;
}

static void unlock(void)
{
	atomic_store_explicit(&mask.busy, false, memory_order_release);
}

static int wanted(const struct copy *copy)
{
	int events = NCCL_COLL | NCCL_P2P;

	if (eventmask_level() == NCCL_OFF)
		return 0;
	if (atomic_load_explicit(&mask.timing, memory_order_relaxed))
		events |= NCCL_KERNEL_LAUNCH;
	if (copy->network_cnt > 0)
		events |= NCCL_PROXY_OP;
	if (copy->network_cnt > 0 && eventmask_level() == NCCL_WINDOW)
		events |= NCCL_PROXY_STEP;
	return events;
}

static void set(const struct copy *copy)
{
	__atomic_store_n(copy->mask, wanted(copy), __ATOMIC_RELAXED);
}

/* The entry of an address, or a free entry for at NULL; NULL when there is none. */
static struct copy *find(const int *at)
{
	struct copy *unused = NULL;

	for (uint32_t i = 0; i < COPY_MAX; i++) {
		if (mask.copies[i].mask == at)
			return &mask.copies[i];
		if (unused == NULL && mask.copies[i].mask == NULL)
			unused = &mask.copies[i];
	}
	return unused;
}

void eventmask_add(int *at, enum eventmask_reach reach)
{
	struct copy *copy;

	if (at == NULL || !lock())
		return;
	copy = find(at);
	if (copy == NULL) {
		__atomic_store_n(at, 0, __ATOMIC_RELAXED);
	} else { /* in one store: other communicators read it */
		copy->mask = at;
		copy->comm_cnt++;
		copy->network_cnt += reach == EVENTMASK_NETWORK;
		set(copy);
	}
	unlock();
}

void eventmask_remove(int *at, enum eventmask_reach reach)
{
	struct copy *copy;

	if (at == NULL || !lock())
		return;
	copy = find(at);
	if (copy != NULL && copy->mask == at) {
		copy->comm_cnt--;
		copy->network_cnt -= reach == EVENTMASK_NETWORK;
		set(copy);
		if (copy->comm_cnt == 0) /* NCCL may be unloaded from here on */
			*copy = (struct copy){ 0 };
	}
	unlock();
}

void eventmask_set_timing(bool on)
{
	atomic_store_explicit(&mask.timing, on, memory_order_relaxed);
}

enum nccl_level eventmask_level(void)
{
	return (enum nccl_level)atomic_load_explicit(&mask.level, memory_order_acquire);
}

void eventmask_set_level(enum nccl_level level)
{
	if (atomic_exchange_explicit(&mask.level, (int)level, memory_order_release) == (int)level)
		return;
	if (!lock())
		return;
	for (uint32_t i = 0; i < COPY_MAX; i++) {
		if (mask.copies[i].mask != NULL)
			set(&mask.copies[i]);
	}
	unlock();
}
