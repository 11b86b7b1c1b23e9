/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum slot_state { SLOT_EMPTY, SLOT_TAKEN, SLOT_FULL };

#define POOL_BYTES (BUFFERS_CNT * BUFFERS_BYTES)

int buffers_open(struct buffers *buffers)
{
	void *memory;

	if (buffers->memory != NULL)
		return 0;
	memory = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	buffers->memory = memory;
	return 0;
}

uint8_t *buffers_take(struct buffers *buffers)
{
	for (size_t i = 0; i < BUFFERS_CNT; i++) {
		uint32_t empty = SLOT_EMPTY;

		/* Acquire: the helper's zeroes must be there before the library writes. */
		if (atomic_compare_exchange_strong_explicit(&buffers->slots[i].state, &empty,
							    SLOT_TAKEN, memory_order_acquire,
							    memory_order_relaxed))
			return buffers->memory + i * BUFFERS_BYTES;
	}
	return NULL;
}

/* BUFFERS_CNT: no slot has this address. */
static size_t slot_of(const struct buffers *buffers, const uint8_t *buffer)
{
	uintptr_t off = (uintptr_t)buffer - (uintptr_t)buffers->memory;

	if (buffers->memory == NULL || off >= POOL_BYTES || off % BUFFERS_BYTES != 0)
		return BUFFERS_CNT;
	return off / BUFFERS_BYTES;
}

bool buffers_fill(struct buffers *buffers, uint8_t *buffer, size_t valid)
{
	size_t slot = slot_of(buffers, buffer);

	if (slot == BUFFERS_CNT ||
	    atomic_load_explicit(&buffers->slots[slot].state, memory_order_relaxed) != SLOT_TAKEN)
		return false;
	buffers->slots[slot].valid = MIN(valid, BUFFERS_BYTES);
	buffers->slots[slot].ticket =
		atomic_fetch_add_explicit(&buffers->ticket, 1, memory_order_relaxed);
	/* Release: what the library wrote is there before the helper reads. */
	atomic_store_explicit(&buffers->slots[slot].state, SLOT_FULL, memory_order_release);
	return true;
}

static bool is_full(const struct buffers *buffers, size_t slot)
{
	return atomic_load_explicit(&buffers->slots[slot].state, memory_order_acquire) == SLOT_FULL;
}

uint8_t *buffers_next(struct buffers *buffers, size_t *ret_valid)
{
	size_t first = BUFFERS_CNT;

	for (size_t i = 0; i < BUFFERS_CNT; i++) {
		if (is_full(buffers, i) &&
		    (first == BUFFERS_CNT ||
		     buffers->slots[i].ticket < buffers->slots[first].ticket))
			first = i;
	}
	if (first == BUFFERS_CNT)
		return NULL;
	*ret_valid = buffers->slots[first].valid;
	return buffers->memory + first * BUFFERS_BYTES;
}

void buffers_release(struct buffers *buffers, uint8_t *buffer)
{
	size_t slot = slot_of(buffers, buffer);

	memset(buffer, 0, buffers->slots[slot].valid);
	atomic_store_explicit(&buffers->slots[slot].state, SLOT_EMPTY, memory_order_release);
}

size_t buffers_full_cnt(const struct buffers *buffers)
{
	size_t cnt = 0;

	for (size_t i = 0; i < BUFFERS_CNT; i++)
		cnt += is_full(buffers, i);
	return cnt;
}

size_t buffers_reset(struct buffers *buffers)
{
	size_t cnt = 0;

	if (buffers->memory == NULL)
		return 0;
	for (size_t i = 0; i < BUFFERS_CNT; i++)
		cnt += atomic_exchange(&buffers->slots[i].state, SLOT_TAKEN) == SLOT_TAKEN;
	(void)madvise(buffers->memory, POOL_BYTES, MADV_DONTNEED);
	for (size_t i = 0; i < BUFFERS_CNT; i++)
		atomic_store(&buffers->slots[i].state, SLOT_EMPTY);
	return cnt;
}
