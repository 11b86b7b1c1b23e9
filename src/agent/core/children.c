/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/children.h"

#include "agent/core/account.h"
#include "agent/core/stacknodes.h"
#include "agent/python/pystack.h"

#include <errno.h>
#include <unistd.h>

#define MISSES_MAX 32u /* reads in a row that failed: no child that can be read */
#define BACKOFF_MAX 6u /* each second miss doubles the time to the next read, up to this */
#define MARKS_BACK 4u  /* collections inside the loader's call */

/* `pids`: set by the thread with the interpreter lock, cleared by the sampler's. */
static struct children {
	_Atomic uint32_t pids[CHILDREN_MAX]; /* 0: free */
	_Atomic bool of_loader[CHILDREN_MAX];
	_Atomic uint32_t added;
	/* The sampler's thread only. */
	uint32_t turn;
	struct {
		struct pystack_process process;
		uint32_t misses;
		int64_t looked_ns;
	} seen[CHILDREN_MAX];
} children;

void children_add(uint32_t pid, bool of_loader)
{
	uint32_t at = atomic_load_explicit(&children.added, memory_order_relaxed);

	for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
		if (atomic_load_explicit(&children.pids[i], memory_order_relaxed) == pid)
			return;
	}
	atomic_store_explicit(&children.of_loader[at % CHILDREN_MAX], of_loader,
			      memory_order_relaxed);
	atomic_store_explicit(&children.pids[at % CHILDREN_MAX], pid, memory_order_release);
	atomic_store_explicit(&children.added, at + 1, memory_order_release);
}

void children_forked(void)
{
	children = (struct children){ 0 };
}

/* Whether the training thread is inside its loader: the latest mark but collections says so. */
static bool is_loading(const struct flight *flight)
{
	const struct worker_block *block = &flight->block;
	uint64_t head = atomic_load_explicit(&block->head, memory_order_acquire);

	for (uint64_t i = 1; i <= MARKS_BACK && i <= head; i++) {
		uint16_t kind = block->ring[(head - i) % MARK_RING_CNT].kind;

		if (kind != MARK_GC)
			return kind == MARK_DATALOADER;
	}
	return false;
}

/* Misses are few in a child that runs, but its start, in which all are, may take long. */
static int64_t period_ns(uint32_t misses)
{
	return NSEC_PER_SEC / CHILDREN_HZ << MIN(misses / 2, BACKOFF_MAX);
}

/* The next child, of the loader or another one, whose turn it is; its slot. 0: none. */
static uint32_t take_turn(bool of_loader, int64_t now_ns, uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
		uint32_t slot = children.turn++ % CHILDREN_MAX;
		uint32_t pid = atomic_load_explicit(&children.pids[slot], memory_order_acquire);

		if (pid == 0 || of_loader != atomic_load_explicit(&children.of_loader[slot],
								  memory_order_relaxed))
			continue;
		if (children.seen[slot].process.pid != pid) {
			children.seen[slot].process = (struct pystack_process){ .pid = pid };
			children.seen[slot].misses = 0;
		} else if (now_ns - children.seen[slot].looked_ns <
			   period_ns(children.seen[slot].misses)) {
			continue;
		}
		children.seen[slot].looked_ns = now_ns;
		*ret_slot = slot;
		return pid;
	}
	return 0;
}

static void forget(uint32_t slot, uint32_t pid)
{
	(void)atomic_compare_exchange_strong(&children.pids[slot], &pid, 0);
}

/* Opened for one read: a descriptor kept open would outlive the child. */
static uint16_t call_of(uint32_t pid)
{
	int fd = account_open_process(pid, "syscall");
	struct account_call call;
	bool found = account_call(fd, &call);

	if (fd >= 0)
		(void)close(fd);
	return found ? flight_sample_call(call.number) : 0;
}

/* Returns 0 or why there is no sample: -ESRCH, -ENOTSUP, or another -errno. */
static int sample(struct flight *flight, struct pystack_process *child, int64_t now_ns)
{
	static uintptr_t codes[PYSTACK_DEPTH];
	struct ring_record record = { .time_ns = now_ns, .kind = FLIGHT_CHILD };
	struct pystack_thread thread;
	bool truncated = false;
	uint32_t node = 0;
	size_t depth;
	int ret = pystack_child(child, &thread);

	if (ret < 0)
		return ret;
	depth = pystack_walk(&thread, codes, ARRAY_SIZE(codes), &truncated, NULL);
	if (depth == 0)
		return -EFAULT;
	ret = stacknodes_find(child, codes, depth, &node);
	if (ret < 0)
		return ret;
	record.extra = (uint64_t)child->pid << 32 | node;
	record.detail = (uint16_t)(call_of(child->pid) | (truncated ? FLIGHT_SAMPLE_TRUNCATED : 0));
	ring_push(flight->samples, FLIGHT_SAMPLE_CNT, &flight->sample_head, &record);
	return 0;
}

/* Looks at one child. False: it has ended, and the next one can be looked at instead. */
static bool look_at_next(struct flight *flight, bool of_loader, int64_t now_ns)
{
	uint32_t slot = 0, pid = take_turn(of_loader, now_ns, &slot);
	int ret;

	if (pid == 0)
		return true;
	ret = sample(flight, &children.seen[slot].process, now_ns);
	if (ret == 0 || ret == -ENOSPC)
		children.seen[slot].misses = 0;
	else if (ret == -ESRCH || ret == -ENOTSUP || ++children.seen[slot].misses >= MISSES_MAX)
		forget(slot, pid);
	return ret != -ESRCH;
}

void children_look(struct flight *flight, bool in_call, int64_t now_ns)
{
	bool none = atomic_load_explicit(&children.added, memory_order_acquire) == 0;
	bool loading = !none && is_loading(flight), done = none || (!loading && !in_call);

	for (uint32_t i = 0; i < CHILDREN_MAX && !done; i++)
		done = look_at_next(flight, loading, now_ns);
}
