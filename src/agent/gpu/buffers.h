/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed number of buffers that a GPU's library fills: any thread takes an empty one
 * and gives back a full one, one helper thread reads the full ones in the order in which
 * they came. No lock and no wait: a library may hold its own lock while it asks, and
 * a lock of ours that it waits for would be a deadlock with our calls into it.
 *
 *	EMPTY --take--> TAKEN --fill--> FULL --next/release--> EMPTY
 *
 * Source: CUPTI's documentation, "CUPTI Activity API" (buffers).
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define BUFFERS_MAX 1024u

/* What a back end takes for its records: a library may hold one for each thread of the job. */
#define BUFFERS_CNT 256u
#define BUFFERS_BYTES ((size_t)128 << 10)

struct buffers {
	uint8_t *memory; /* cnt * bytes, mapped; pages come when they are used */
	size_t cnt, bytes;
	_Atomic uint64_t ticket;
	struct {
		uint8_t *buffer; /* NULL: none */
		size_t valid;
		void *at; /* of the function that reads */
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

/* Gives a taken buffer back with its first `valid` bytes filled. False: it is none of ours. */
bool buffers_fill(struct buffers *buffers, uint8_t *buffer, size_t valid);

/* Gives it back with what nobody shall read: it is empty again, but not zeroed. */
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
 * Reads at most so many records out of full buffers and releases those that are at their end.
 * Returns how many; 0: none is full. One thread, which doesn't call buffers_next() itself.
 */
size_t buffers_drain(struct buffers *buffers, buffers_read_fn read, void *reader, size_t most);

/* Releases the buffer that buffers_drain() is in the midst of. */
void buffers_leave(struct buffers *buffers);

size_t buffers_full_cnt(const struct buffers *buffers);

/* Taken ones whose first four bytes aren't 0 any more: a look at memory that others may write. */
size_t buffers_begun_cnt(const struct buffers *buffers);

/* How many were ever filled. */
uint64_t buffers_filled_cnt(const struct buffers *buffers);

/*
 * Nobody writes any more: buffers that never came back are empty again, and the pages go
 * back to the system. Returns how many of them had been taken.
 */
size_t buffers_reset(struct buffers *buffers);
