/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocprofiler-sdk's records become events of gputrace.h. Knows neither the library nor
 * threads, but for the names of kernels, which come while code is loaded, on any thread.
 */
#pragma once

#include "agent/gpu/gputrace.h"
#include "agent/gpu/rocprof/rocprof_abi.h"

#include <stdatomic.h>

#define ROCPROF_RECORD_MAX 192u /* of a longer one this much is kept */
#define ROCPROF_SYMBOL_SLOTS (1u << 16)
#define ROCPROF_TEXT_BYTES ((size_t)16 << 20)
#define ROCPROF_DEVICE_MAX 64u
#define ROCPROF_QUEUE_MAX 256u
#define ROCPROF_CALL_MAX 64u

/* A kernel's name; the first two fields come first, len last. */
struct rocprof_symbol {
	_Atomic uint64_t kernel; /* 0: free */
	uint32_t text;		 /* offset in the texts */
	_Atomic uint32_t len;	 /* 0: not there yet */
	uint32_t window, name;	 /* the sink's number in that window; the reader's own */
};

/* Mapped at once, pages come when they are used. */
struct rocprof_symbols {
	_Atomic uint64_t used; /* bytes of text[] */
	_Atomic uint32_t cnt;
	struct rocprof_symbol slots[ROCPROF_SYMBOL_SLOTS];
	char text[ROCPROF_TEXT_BYTES];
};

/* Any thread. What finds no room has no name. */
void rocprof_symbols_add(struct rocprof_symbols *symbols, uint64_t kernel, const char *name);

struct rocprof_reader {
	const struct gputrace_sink *sink;
	struct rocprof_symbols *symbols;
	int64_t offset_ns;		      /* added to all times */
	uint32_t window;		      /* counts them; names of earlier ones aren't used */
	uint64_t devices[ROCPROF_DEVICE_MAX]; /* GPU agents, in order */
	size_t device_cnt;
	uint64_t queues[ROCPROF_QUEUE_MAX]; /* in the order in which they were seen */
	size_t queue_cnt;
	int32_t calls[ROCPROF_CALL_MAX]; /* operations that are recorded */
	const char *call_texts[ROCPROF_CALL_MAX];
	uint32_t call_names[ROCPROF_CALL_MAX];
	size_t call_cnt;
	uint32_t copy_names[8], nameless;
};

/* A window begins. */
void rocprof_reader_begin(struct rocprof_reader *reader, const struct gputrace_sink *sink,
			  int64_t offset_ns);

/*
 * Copies a record to to[room], cut to ROCPROF_RECORD_MAX. Returns its bytes there, a multiple of 8;
 * 0: no room, or a malformed record.
 */
size_t rocprof_record_copy(uint8_t *to, size_t room, const void *payload);

/*
 * A buffers_read_fn (buffers.h) for a struct rocprof_reader, of copied records; *at is the next
 * one. Records of unknown kinds are passed over.
 */
size_t rocprof_reader_read(void *rocprof_reader, uint8_t *buffer, size_t valid, void **at,
			   size_t most);
