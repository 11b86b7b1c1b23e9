/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records in memory shared by a worker and its observers. One thread writes and
 * overwrites the oldest records; any process reads, also after the writer was stopped or killed in
 * the middle of a record. Readers do not trust the contents: positions are taken modulo the size,
 * torn records are detected.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

/* The meaning of the fields depends on the kind: see block.h and record_kinds.h. */
struct ring_record {
	int64_t time_ns; /* CLOCK_MONOTONIC */
	int64_t value;
	uint32_t seq; /* position + 1, written last: reveals a torn record */
	uint16_t kind;
	uint16_t detail;
	uint64_t extra;
};
_Static_assert(sizeof(struct ring_record) == 32, "32-byte records");

/* The writer: one thread at a time. cnt: a power of two. */
static inline void ring_push(struct ring_record *records, uint32_t cnt, _Atomic uint64_t *head,
			     const struct ring_record *what)
{
	uint64_t position = atomic_load_explicit(head, memory_order_relaxed);
	struct ring_record *record = &records[position & (cnt - 1)];

	__atomic_store_n(&record->seq, 0, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	__atomic_store_n(&record->time_ns, what->time_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&record->value, what->value, __ATOMIC_RELAXED);
	__atomic_store_n(&record->kind, what->kind, __ATOMIC_RELAXED);
	__atomic_store_n(&record->detail, what->detail, __ATOMIC_RELAXED);
	__atomic_store_n(&record->extra, what->extra, __ATOMIC_RELAXED);
	__atomic_store_n(&record->seq, (uint32_t)(position + 1), __ATOMIC_RELEASE);
	atomic_store_explicit(head, position + 1, memory_order_release);
}

/* A reader: false if the record at this position is torn or already overwritten. */
static inline bool ring_copy(const struct ring_record *records, uint32_t cnt, uint64_t position,
			     struct ring_record *ret)
{
	const struct ring_record *record = &records[position & (cnt - 1)];
	uint32_t expected = (uint32_t)(position + 1);

	if (__atomic_load_n(&record->seq, __ATOMIC_ACQUIRE) != expected)
		return false;
	ret->time_ns = __atomic_load_n(&record->time_ns, __ATOMIC_RELAXED);
	ret->value = __atomic_load_n(&record->value, __ATOMIC_RELAXED);
	ret->seq = expected;
	ret->kind = __atomic_load_n(&record->kind, __ATOMIC_RELAXED);
	ret->detail = __atomic_load_n(&record->detail, __ATOMIC_RELAXED);
	ret->extra = __atomic_load_n(&record->extra, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
	return __atomic_load_n(&record->seq, __ATOMIC_RELAXED) == expected;
}

/* A reader's position. */
struct ring_tail {
	uint64_t taken;	  /* position of the next record */
	uint64_t overrun; /* records overwritten before they were read */
	uint64_t torn;	  /* caught while being written */
	uint64_t back;	  /* times the head went back, which the agent's writer never does */
};

/*
 * Copies up to cap records in order and returns their number; examines at most cap slots. If more
 * was written than the ring holds, the newest records are returned.
 */
static inline size_t ring_take(struct ring_tail *tail, const struct ring_record *records,
			       uint32_t cnt, const _Atomic uint64_t *head, struct ring_record *ret,
			       size_t cap)
{
	uint64_t end = atomic_load_explicit(head, memory_order_acquire);
	size_t taken = 0;

	if (end < tail->taken) {
		tail->back++;
		tail->taken = end;
	}
	if (end - tail->taken > cnt) {
		tail->overrun += end - tail->taken - cnt;
		tail->taken = end - cnt;
	}
	for (; tail->taken < end && taken < cap; tail->taken++) {
		if (ring_copy(records, cnt, tail->taken, &ret[taken]))
			taken++;
		else
			tail->torn++;
	}
	return taken;
}
