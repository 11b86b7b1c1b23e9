/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed number of buffers that a GPU's library fills: any thread takes an empty one and returns
 * it filled, one helper thread reads the full ones in order of arrival. No lock and no wait: a
 * library may hold its own lock while it asks, and waiting for a lock of the agent's could deadlock
 * with the agent's calls into the library.
 *
 *	EMPTY --take--> TAKEN --fill--> FULL --next/release--> EMPTY
 *
 * Source: CUPTI's documentation, "CUPTI Activity API" (buffers).
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define BUFFERS_MAX 1024u

/* Buffers of a back end for its records: a library may hold one for each thread of the job. */
#define BUFFERS_CNT 256u
#define BUFFERS_BYTES ((size_t)128 << 10)

struct buffers {
	uint8_t *memory; /* cnt * bytes, mapped; pages come when they are used */
	size_t cnt, bytes;
	_Atomic uint64_t ticket;
	struct {
		uint8_t *buffer; /* NULL: none */
		size_t valid;
		void *at; /* position of the reading function */
	} reading;
	struct {
		_Atomic uint32_t state;
		size_t valid;
		uint64_t ticket; /* when it was filled */
	} slots[BUFFERS_MAX];
};

/* Maps cnt (at most BUFFERS_MAX) buffers of so many bytes, unless they are. Returns 0 or -ENOMEM. */
_must_check_ int buffers_open(struct buffers *buffers, size_t cnt, size_t bytes);

/* An empty buffer, zeroed, or NULL: all are in use. Any thread. */
uint8_t *buffers_take(struct buffers *buffers);

/* Returns a taken buffer with its first `valid` bytes filled. False: not one of these buffers. */
bool buffers_fill(struct buffers *buffers, uint8_t *buffer, size_t valid);

/* Returns the buffer unread; contents are discarded, not cleared. */
void buffers_discard(struct buffers *buffers, uint8_t *buffer);

/* The full buffer that came first, or NULL. It stays so until buffers_release(). One thread. */
uint8_t *buffers_next(struct buffers *buffers, size_t *ret_valid);
void buffers_release(struct buffers *buffers, uint8_t *buffer);

/*
 * Reads records from buffer[valid] on from *at, NULL at first, and leaves there how far
 * it came. Returns how many, at most `most`; fewer: the buffer is at its end.
 */
typedef size_t (*buffers_read_fn)(void *reader, uint8_t *buffer, size_t valid, void **at,
				  size_t most);

/*
 * Reads at most `most` records from full buffers and releases buffers that were read to their end.
 * Returns how many; 0: none is full. One thread, which doesn't call buffers_next() itself.
 */
size_t buffers_drain(struct buffers *buffers, buffers_read_fn read, void *reader, size_t most);

/* Releases the buffer that buffers_drain() has partly read. */
void buffers_leave(struct buffers *buffers);

/* Taken buffers whose first four bytes are not 0: reads memory that other threads may write. */
size_t buffers_begun_cnt(const struct buffers *buffers);

/* Total of filled buffers. */
uint64_t buffers_filled_cnt(const struct buffers *buffers);

/*
 * After the last write: buffers that were never returned are empty again, and the pages are freed
 * to the system. Returns how many were still taken.
 */
size_t buffers_reset(struct buffers *buffers);
