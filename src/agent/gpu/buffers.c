/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum slot_state { SLOT_EMPTY, SLOT_TAKEN, SLOT_FULL };

int buffers_open(struct buffers *buffers, size_t cnt, size_t bytes)
{
	void *memory;

	if (buffers->memory != NULL)
		return 0;
	memory = mmap(NULL, cnt * bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	buffers->memory = memory;
	buffers->bytes = bytes;
	buffers->cnt = cnt;
	return 0;
}

static uint32_t state_of(const struct buffers *buffers, size_t slot, memory_order order)
{
	return atomic_load_explicit(&buffers->slots[slot].state, order);
}

uint8_t *buffers_take(struct buffers *buffers)
{
	for (size_t i = 0; i < buffers->cnt; i++) {
		uint32_t empty = SLOT_EMPTY;

		if (state_of(buffers, i, memory_order_relaxed) != SLOT_EMPTY)
			continue;
		/* Acquire: the helper's zeroes must be there before the library writes. */
		if (atomic_compare_exchange_strong_explicit(&buffers->slots[i].state, &empty,
							    SLOT_TAKEN, memory_order_acquire,
							    memory_order_relaxed))
			return buffers->memory + i * buffers->bytes;
	}
	return NULL;
}

/* cnt: no slot has this address. */
static size_t slot_of(const struct buffers *buffers, const uint8_t *buffer)
{
	uintptr_t off = (uintptr_t)buffer - (uintptr_t)buffers->memory;

	if (buffers->memory == NULL || off >= buffers->cnt * buffers->bytes ||
	    off % buffers->bytes != 0)
		return buffers->cnt;
	return off / buffers->bytes;
}

/* The slot of a buffer that its caller has taken; cnt: it has not. */
static size_t taken_slot(const struct buffers *buffers, const uint8_t *buffer)
{
	size_t slot = slot_of(buffers, buffer);

	if (slot < buffers->cnt && state_of(buffers, slot, memory_order_relaxed) != SLOT_TAKEN)
		return buffers->cnt;
	return slot;
}

bool buffers_fill(struct buffers *buffers, uint8_t *buffer, size_t valid)
{
	size_t slot = taken_slot(buffers, buffer);

	if (slot == buffers->cnt)
		return false;
	buffers->slots[slot].valid = MIN(valid, buffers->bytes);
	buffers->slots[slot].ticket =
		atomic_fetch_add_explicit(&buffers->ticket, 1, memory_order_relaxed);
	/* Release: what the library wrote is there before the helper reads. */
	atomic_store_explicit(&buffers->slots[slot].state, SLOT_FULL, memory_order_release);
	return true;
}

void buffers_discard(struct buffers *buffers, uint8_t *buffer)
{
	size_t slot = taken_slot(buffers, buffer);

	/* Release: the last writes into it are done before the next taker's. */
	if (slot < buffers->cnt)
		atomic_store_explicit(&buffers->slots[slot].state, SLOT_EMPTY,
				      memory_order_release);
}

static bool is_full(const struct buffers *buffers, size_t slot)
{
	return state_of(buffers, slot, memory_order_acquire) == SLOT_FULL;
}

uint8_t *buffers_next(struct buffers *buffers, size_t *ret_valid)
{
	size_t first = buffers->cnt;

	for (size_t i = 0; i < buffers->cnt; i++) {
		if (is_full(buffers, i) &&
		    (first == buffers->cnt ||
		     buffers->slots[i].ticket < buffers->slots[first].ticket))
			first = i;
	}
	if (first == buffers->cnt)
		return NULL;
	*ret_valid = buffers->slots[first].valid;
	return buffers->memory + first * buffers->bytes;
}

void buffers_release(struct buffers *buffers, uint8_t *buffer)
{
	size_t slot = slot_of(buffers, buffer);

	memset(buffer, 0, buffers->slots[slot].valid);
	atomic_store_explicit(&buffers->slots[slot].state, SLOT_EMPTY, memory_order_release);
}

void buffers_leave(struct buffers *buffers)
{
	if (buffers->reading.buffer != NULL)
		buffers_release(buffers, buffers->reading.buffer);
	buffers->reading.buffer = NULL;
}

static bool read_next(struct buffers *buffers)
{
	buffers_leave(buffers);
	buffers->reading.at = NULL;
	buffers->reading.buffer = buffers_next(buffers, &buffers->reading.valid);
	return buffers->reading.buffer != NULL;
}

size_t buffers_drain(struct buffers *buffers, buffers_read_fn read, void *reader, size_t most)
{
	size_t cnt = 0;

	while (cnt < most && (buffers->reading.buffer != NULL || read_next(buffers))) {
		size_t got = read(reader, buffers->reading.buffer, buffers->reading.valid,
				  &buffers->reading.at, most - cnt);

		cnt += got;
		if (cnt < most)
			buffers_leave(buffers);
	}
	return cnt;
}

static bool is_begun(const struct buffers *buffers, size_t slot)
{
	const void *at = buffers->memory + slot * buffers->bytes;

	return state_of(buffers, slot, memory_order_acquire) == SLOT_TAKEN &&
	       __atomic_load_n((const uint32_t *)at, __ATOMIC_RELAXED) != 0;
}

size_t buffers_begun_cnt(const struct buffers *buffers)
{
	size_t cnt = 0;

	for (size_t i = 0; i < buffers->cnt; i++)
		cnt += is_begun(buffers, i);
	return cnt;
}

uint64_t buffers_filled_cnt(const struct buffers *buffers)
{
	return atomic_load(&buffers->ticket);
}

size_t buffers_reset(struct buffers *buffers)
{
	size_t cnt = 0;

	if (buffers->memory == NULL)
		return 0;
	buffers->reading.buffer = NULL;
	for (size_t i = 0; i < buffers->cnt; i++)
		cnt += atomic_exchange(&buffers->slots[i].state, SLOT_TAKEN) == SLOT_TAKEN;
	(void)madvise(buffers->memory, buffers->cnt * buffers->bytes, MADV_DONTNEED);
	for (size_t i = 0; i < buffers->cnt; i++)
		atomic_store(&buffers->slots[i].state, SLOT_EMPTY);
	return cnt;
}
