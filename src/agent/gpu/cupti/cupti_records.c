/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/cupti/cupti_records.h"

#include "agent/gpu/cupti/cupti_calls.h"
#include "agent/gpu/cupti/cupti_layout.h"

#include <stddef.h>
#include <string.h>

/* Keys of names that are not pointers to kernel names: no pointer is so small. */
enum { KEY_COPY = 0x1000, KEY_SET = 0x2000, KEY_SYNC = 0x3000, KEY_OVERHEAD = 0x4000 };
enum { KEY_RUNTIME = 0x5000, KEY_DRIVER = 0x6000 };

void cupti_reader_reset(struct cupti_reader *reader)
{
	reader->context_cnt = reader->wait_cnt = 0;
	memset(reader->names, 0, sizeof(reader->names));
}

/* --- names --- */

/* The slot of a key, or a free one; NULL: the neighborhood is full. */
static struct cupti_name *slot_of(struct cupti_reader *reader, uintptr_t key)
{
	uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u >> 40;

	for (size_t i = 0; i < 16; i++) {
		struct cupti_name *slot = &reader->names[(hash + i) & (CUPTI_NAME_SLOTS - 1)];

		if (slot->key == key || slot->key == 0)
			return slot;
	}
	return NULL;
}

static uint32_t remember(struct cupti_reader *reader, struct cupti_name *slot, uintptr_t key,
			 const char *text)
{
	uint32_t name = reader->sink->name(text, strlen(text));

	if (slot != NULL && name != 0)
		*slot = (struct cupti_name){ key, name };
	return name;
}

static uint32_t kernel_name(struct cupti_reader *reader, const char *text)
{
	struct cupti_name *slot;

	if (text == NULL)
		return 0;
	slot = slot_of(reader, (uintptr_t)text);
	if (slot != NULL && slot->key != 0)
		return slot->name;
	return remember(reader, slot, (uintptr_t)text, text);
}

static const char *memory_name(uint8_t kind)
{
	static const char *const names[] = { "Unknown",	      "Pageable",      "Pinned",
					     "Device",	      "Array",	       "Managed",
					     "Device Static", "Managed Static" };

	return names[kind < ARRAY_SIZE(names) ? kind : 0];
}

static void append(char *text, size_t *len, const char *part)
{
	size_t cnt = strlen(part);

	memcpy(text + *len, part, cnt + 1);
	*len += cnt;
}

/* "Memcpy HtoD (Pageable -> Device)", as torch's profiler calls it. */
static uint32_t copy_name(struct cupti_reader *reader, uint8_t kind, uint8_t from, uint8_t to)
{
	static const char *const kinds[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",	"DtoA", "DtoD", "HtoH", "PtoP" };
	uintptr_t key = KEY_COPY | (uintptr_t)(kind & 15) << 6 | (from & 7u) << 3 | (to & 7u);
	struct cupti_name *slot = slot_of(reader, key);
	char text[64];
	size_t len = 0;

	if (slot != NULL && slot->key != 0)
		return slot->name;
	append(text, &len, "Memcpy ");
	append(text, &len, kinds[kind < ARRAY_SIZE(kinds) ? kind : 0]);
	append(text, &len, " (");
	append(text, &len, memory_name(from));
	append(text, &len, " -> ");
	append(text, &len, memory_name(to));
	append(text, &len, ")");
	return remember(reader, slot, key, text);
}

static uint32_t set_name(struct cupti_reader *reader, uint16_t memory)
{
	uintptr_t key = KEY_SET | (memory & 7u);
	struct cupti_name *slot = slot_of(reader, key);
	char text[32];
	size_t len = 0;

	if (slot != NULL && slot->key != 0)
		return slot->name;
	append(text, &len, "Memset (");
	append(text, &len, memory_name((uint8_t)MIN(memory, 255u)));
	append(text, &len, ")");
	return remember(reader, slot, key, text);
}

/* A name that is known beforehand. */
static uint32_t fixed_name(struct cupti_reader *reader, uintptr_t key, const char *text)
{
	struct cupti_name *slot = slot_of(reader, key);

	if (slot != NULL && slot->key != 0)
		return slot->name;
	return remember(reader, slot, key, text);
}

const char *cupti_call_name(uint32_t domain, uint32_t call)
{
	static const struct {
		uint16_t domain, call;
		const char *name;
	} calls[] = {
#define X(domain, call, name) { CUPTI_DOMAIN_##domain, call, name },
		CUPTI_CALL_LIST(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].domain == domain && calls[i].call == call)
			return calls[i].name;
	}
	return NULL;
}

/* 0: a call that was not requested. */
static uint32_t call_name(struct cupti_reader *reader, const struct cupti_api *api)
{
	bool runtime = api->kind == CUPTI_KIND_RUNTIME;
	uintptr_t key = (runtime ? KEY_RUNTIME : KEY_DRIVER) | (api->call & 0xfff);
	struct cupti_name *slot = slot_of(reader, key);
	const char *text;

	if (slot != NULL && slot->key != 0)
		return slot->name;
	text = cupti_call_name(runtime ? CUPTI_DOMAIN_RUNTIME : CUPTI_DOMAIN_DRIVER, api->call);
	return text != NULL ? remember(reader, slot, key, text) : 0;
}

/* --- records --- */

static bool set_times(const struct cupti_reader *reader, uint64_t start, uint64_t end,
		      struct gputrace_event *event)
{
	return gputrace_set_times(reader->sink, reader->offset_ns, start, end, event);
}

/* Buffers come in any order: that of a thread that waits may be before the kernels'. */
static void keep_wait(struct cupti_reader *reader, uint32_t context,
		      const struct gputrace_event *event)
{
	if (reader->wait_cnt == CUPTI_WAIT_MAX) {
		reader->sink->lose(GPUTRACE_DROPPED, 1);
		return;
	}
	reader->waits[reader->wait_cnt].context = context;
	reader->waits[reader->wait_cnt++].event = *event;
}

static void hand_waits_over(struct cupti_reader *reader, uint32_t context, int32_t device)
{
	size_t kept = 0;

	for (size_t i = 0; i < reader->wait_cnt; i++) {
		if (reader->waits[i].context != context) {
			reader->waits[kept++] = reader->waits[i];
			continue;
		}
		reader->waits[i].event.device = device;
		reader->sink->event(&reader->waits[i].event);
	}
	reader->wait_cnt = kept;
}

void cupti_reader_end(struct cupti_reader *reader)
{
	if (reader->wait_cnt > 0)
		reader->sink->lose(GPUTRACE_DROPPED, reader->wait_cnt);
	reader->wait_cnt = 0;
}

static void note_context(struct cupti_reader *reader, uint32_t context, uint32_t device)
{
	for (size_t i = 0; i < reader->context_cnt; i++) {
		if (reader->contexts[i].context == context)
			return;
	}
	if (reader->context_cnt == CUPTI_CONTEXT_MAX)
		return;
	reader->contexts[reader->context_cnt].context = context;
	reader->contexts[reader->context_cnt++].device = (int32_t)device;
	hand_waits_over(reader, context, (int32_t)device);
}

/* -1: nothing ran in it yet. */
static int32_t device_of(const struct cupti_reader *reader, uint32_t context)
{
	for (size_t i = 0; i < reader->context_cnt; i++) {
		if (reader->contexts[i].context == context)
			return reader->contexts[i].device;
	}
	return -1;
}

static uint64_t product(const uint32_t sides[static 3])
{
	return (uint64_t)sides[0] * sides[1] * sides[2];
}

static void read_kernel(struct cupti_reader *reader, const struct cupti_kernel *kernel)
{
	struct gputrace_event event = { .kind = GPUTRACE_KERNEL,
					.device = (int32_t)kernel->device,
					.id = kernel->stream,
					.correlation = kernel->correlation,
					.graph_node = kernel->graph_node,
					.size = product(kernel->grid) * product(kernel->block) };

	reader->graphs_ran |= kernel->graph_node != 0;
	if (reader->graphs_uncorrelated && kernel->graph_node != 0)
		event.correlation = 0;
	note_context(reader, kernel->context, kernel->device);
	if (!set_times(reader, kernel->start, kernel->end, &event))
		return;
	event.name = kernel_name(reader, kernel->name);
	reader->sink->event(&event);
}

static void read_memop(struct cupti_reader *reader, const struct cupti_memcpy *copy, uint32_t name,
		       uint32_t correlation)
{
	struct gputrace_event event = { .kind = GPUTRACE_MEMOP,
					.device = (int32_t)copy->device,
					.id = copy->stream,
					.correlation = correlation,
					.size = copy->bytes,
					.name = name };

	note_context(reader, copy->context, copy->device);
	if (set_times(reader, copy->start, copy->end, &event))
		reader->sink->event(&event);
}

/* Bytes, times, device, context and stream are where a copy has them. */
static void read_set(struct cupti_reader *reader, const struct cupti_memset *set)
{
	struct cupti_memcpy as_copy = { .bytes = set->bytes,
					.start = set->start,
					.end = set->end,
					.device = set->device,
					.context = set->context,
					.stream = set->stream };

	read_memop(reader, &as_copy, set_name(reader, set->memory), set->correlation);
}

static void read_peer(struct cupti_reader *reader, const struct cupti_memcpy_peer *peer)
{
	struct cupti_memcpy as_copy = { .bytes = peer->bytes,
					.start = peer->start,
					.end = peer->end,
					.device = peer->device,
					.context = peer->context,
					.stream = peer->stream };

	read_memop(reader, &as_copy, copy_name(reader, peer->copy_kind, peer->from, peer->to),
		   peer->correlation);
}

/* Of a whole context: no stream to draw it on, and the API call has the same times. */
static void read_sync(struct cupti_reader *reader, const struct cupti_sync *sync)
{
	static const char *const names[] = { "Unknown Sync", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };
	uint32_t type = sync->type < ARRAY_SIZE(names) ? sync->type : 0;
	struct gputrace_event event = { .kind = GPUTRACE_SYNC,
					.device = device_of(reader, sync->context),
					.id = sync->stream,
					.correlation = sync->correlation };

	if (sync->stream == CUPTI_NO_STREAM || !set_times(reader, sync->start, sync->end, &event))
		return;
	event.name = fixed_name(reader, KEY_SYNC | type, names[type]);
	if (event.device < 0)
		keep_wait(reader, sync->context, &event);
	else
		reader->sink->event(&event);
}

static void read_api(struct cupti_reader *reader, const struct cupti_api *api)
{
	struct gputrace_event event = { .kind = GPUTRACE_API,
					.device = GPUTRACE_THREAD,
					.id = api->tid,
					.correlation = api->correlation };

	event.name = call_name(reader, api);
	if (event.name == 0 || !set_times(reader, api->start, api->end, &event))
		return;
	reader->sink->event(&event);
}

static void read_overhead(struct cupti_reader *reader, const struct cupti_overhead *overhead)
{
	/* Below the shift there is one, which has the first place. Until CUDA 13.5. */
	static const char *const names[] = { "Driver Compiler",
					     "Buffer Flush",
					     "Instrumentation",
					     "Resource",
					     "Runtime Triggered Module Loading",
					     "Lazy Function Loading",
					     "Command Buffer Full",
					     "Activity Buffer Request",
					     "UVM Activity Init" };
	uint32_t what = overhead->what >> CUPTI_OVERHEAD_SHIFT;
	bool known =
		what > 0 ? what < ARRAY_SIZE(names) : overhead->what == CUPTI_OVERHEAD_COMPILER;
	struct gputrace_event event = { .kind = GPUTRACE_OVERHEAD,
					.device = GPUTRACE_THREAD,
					.id = overhead->tid };

	if (overhead->object != CUPTI_OBJECT_THREAD ||
	    !set_times(reader, overhead->start, overhead->end, &event))
		return;
	event.name = known ? fixed_name(reader, KEY_OVERHEAD | what, names[what])
			   : fixed_name(reader, KEY_OVERHEAD | 0xfff, "Unknown Overhead");
	reader->sink->event(&event);
}

static void read_one(struct cupti_reader *reader, const struct cupti_record *record)
{
	const void *at = record;
	const struct cupti_memcpy *copy = at;

	switch (record->kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		read_kernel(reader, at);
		break;
	case CUPTI_KIND_MEMCPY:
		read_memop(reader, copy, copy_name(reader, copy->copy_kind, copy->from, copy->to),
			   copy->correlation);
		break;
	case CUPTI_KIND_MEMCPY2:
		read_peer(reader, at);
		break;
	case CUPTI_KIND_MEMSET:
		read_set(reader, at);
		break;
	case CUPTI_KIND_SYNCHRONIZATION:
		read_sync(reader, at);
		break;
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER:
		read_api(reader, at);
		break;
	case CUPTI_KIND_OVERHEAD:
		read_overhead(reader, at);
		break;
	default: /* of a kind that another tool enabled */
		break;
	}
}

size_t cupti_reader_read(void *cupti_reader, uint8_t *buffer, size_t valid, void **at, size_t most)
{
	struct cupti_reader *reader = cupti_reader;
	size_t cnt = 0;

	while (cnt < most && reader->next(buffer, valid, at) == CUPTI_OK) {
		read_one(reader, *at);
		cnt++;
	}
	return cnt;
}
