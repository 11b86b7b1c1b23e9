/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/rocprof/rocprof_records.h"

#include <string.h>

#define PROBES 32u
#define NAME_BYTES_MAX 1000u
#define RECORD_BYTES_BELIEVABLE 65536u
#define COPY_QUEUE 1000u /* copies know no queue: each direction is drawn as one */

/* --- names of kernels --- */

static uint32_t slot_at(uint64_t kernel, uint32_t probe)
{
	uint64_t hash = kernel * 0x9e3779b97f4a7c15u >> 40;

	return (uint32_t)(hash + probe) & (ROCPROF_SYMBOL_SLOTS - 1);
}

/* Takes a free slot for a kernel that has none. */
static struct rocprof_symbol *claim(struct rocprof_symbols *symbols, uint64_t kernel)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct rocprof_symbol *slot = &symbols->slots[slot_at(kernel, i)];
		uint64_t free_slot = 0;

		if (atomic_compare_exchange_strong(&slot->kernel, &free_slot, kernel))
			return slot;
		if (free_slot == kernel)
			return NULL;
	}
	return NULL;
}

/* Without what the compiler appends to a kernel's descriptor. */
static size_t name_len(const char *name)
{
	size_t len = strnlen(name, NAME_BYTES_MAX);

	return len > 3 && memcmp(name + len - 3, ".kd", 3) == 0 ? len - 3 : len;
}

void rocprof_symbols_add(struct rocprof_symbols *symbols, uint64_t kernel, const char *name)
{
	struct rocprof_symbol *slot;
	uint64_t text;
	size_t len;

	if (kernel == 0 || name == NULL || name[0] == '\0')
		return;
	slot = claim(symbols, kernel);
	if (slot == NULL)
		return;
	len = name_len(name);
	text = atomic_fetch_add_explicit(&symbols->used, len, memory_order_relaxed);
	if (text > ROCPROF_TEXT_BYTES - len)
		return;
	memcpy(symbols->text + text, name, len);
	slot->text = (uint32_t)text;
	atomic_store_explicit(&slot->len, (uint32_t)len, memory_order_release);
	atomic_fetch_add_explicit(&symbols->cnt, 1, memory_order_relaxed);
}

static struct rocprof_symbol *find_symbol(struct rocprof_symbols *symbols, uint64_t kernel)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct rocprof_symbol *slot = &symbols->slots[slot_at(kernel, i)];
		uint64_t there = atomic_load_explicit(&slot->kernel, memory_order_acquire);

		if (there == kernel)
			return slot;
		if (there == 0)
			return NULL;
	}
	return NULL;
}

static uint32_t fixed_name(struct rocprof_reader *reader, uint32_t *name, const char *text)
{
	if (*name == 0)
		*name = reader->sink->name(text, strlen(text));
	return *name;
}

static uint32_t kernel_name(struct rocprof_reader *reader, uint64_t kernel)
{
	struct rocprof_symbol *slot = find_symbol(reader->symbols, kernel);
	uint32_t len;

	len = slot != NULL ? atomic_load_explicit(&slot->len, memory_order_acquire) : 0;
	if (len == 0)
		return fixed_name(reader, &reader->nameless, "unknown kernel");
	if (slot->window != reader->window || slot->name == 0) {
		slot->name = reader->sink->name(reader->symbols->text + slot->text, len);
		slot->window = reader->window;
	}
	return slot->name;
}

/* --- records --- */

static bool set_times(const struct rocprof_reader *reader, uint64_t start, uint64_t end,
		      struct gputrace_event *event)
{
	return gputrace_set_times(reader->sink, reader->offset_ns, start, end, event);
}

/* -1: no GPU. */
static int32_t device_of(const struct rocprof_reader *reader, uint64_t agent)
{
	for (size_t i = 0; i < reader->device_cnt; i++) {
		if (reader->devices[i] == agent)
			return (int32_t)i;
	}
	return -1;
}

/* Queues are addresses there: here they are numbered. Those beyond the table share a number. */
static uint32_t queue_number(struct rocprof_reader *reader, uint64_t queue)
{
	size_t i = 0;

	while (i < reader->queue_cnt && reader->queues[i] != queue)
		i++;
	if (i == reader->queue_cnt && i < ROCPROF_QUEUE_MAX)
		reader->queues[reader->queue_cnt++] = queue;
	return (uint32_t)i + 1;
}

static void read_kernel(struct rocprof_reader *reader, const struct rocprof_kernel *kernel)
{
	struct gputrace_event event = { .kind = GPUTRACE_KERNEL,
					.device = MAX(device_of(reader, kernel->agent), 0),
					.id = queue_number(reader, kernel->queue),
					.correlation = (uint32_t)kernel->record.correlation };

	event.size = (uint64_t)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
	if (!set_times(reader, kernel->start, kernel->end, &event))
		return;
	event.name = kernel_name(reader, kernel->kernel);
	reader->sink->event(&event);
}

/* As torch's profiler names them; the kind of host memory is unknown. */
static uint32_t copy_name(struct rocprof_reader *reader, uint32_t direction)
{
	static const char *const texts[] = { "Memcpy Unknown (Unknown -> Unknown)",
					     "Memcpy HtoH (Host -> Host)",
					     "Memcpy HtoD (Host -> Device)",
					     "Memcpy DtoH (Device -> Host)",
					     "Memcpy DtoD (Device -> Device)" };

	return fixed_name(reader, &reader->copy_names[direction], texts[direction]);
}

static void read_copy(struct rocprof_reader *reader, const struct rocprof_copy_record *copy)
{
	int32_t operation = copy->record.operation;
	bool known = operation > 0 && operation <= ROCPROF_COPY_DEVICE_TO_DEVICE;
	uint32_t direction = known ? (uint32_t)operation : 0;
	int32_t to = device_of(reader, copy->to), from = device_of(reader, copy->from);
	struct gputrace_event event = { .kind = GPUTRACE_MEMOP,
					.device = MAX(to >= 0 ? to : from, 0),
					.id = COPY_QUEUE + direction,
					.size = copy->bytes,
					.correlation = (uint32_t)copy->record.correlation };

	if (!set_times(reader, copy->start, copy->end, &event))
		return;
	event.name = copy_name(reader, direction);
	reader->sink->event(&event);
}

static uint32_t call_name(struct rocprof_reader *reader, int32_t operation)
{
	for (size_t i = 0; i < reader->call_cnt; i++) {
		if (reader->calls[i] == operation)
			return fixed_name(reader, &reader->call_names[i], reader->call_texts[i]);
	}
	return 0;
}

static void read_call(struct rocprof_reader *reader, const struct rocprof_api *api)
{
	struct gputrace_event event = { .kind = GPUTRACE_API,
					.device = GPUTRACE_THREAD,
					.id = (uint32_t)api->thread,
					.correlation = (uint32_t)api->record.correlation };

	event.name = call_name(reader, api->record.operation);
	if (event.name != 0 && set_times(reader, api->start, api->end, &event))
		reader->sink->event(&event);
}

static void read_call_0(struct rocprof_reader *reader, const struct rocprof_api_0 *old)
{
	struct rocprof_api api = {
		.record = old->record, .start = old->start, .end = old->end, .thread = old->thread
	};

	read_call(reader, &api);
}

/* False: it is shorter than any version has it. */
static bool read_record(struct rocprof_reader *reader, const void *at)
{
	const struct rocprof_record *record = at;

	switch (record->kind) {
	case ROCPROF_BUFFER_KERNEL_DISPATCH:
		if (record->size < sizeof(struct rocprof_kernel))
			return false;
		read_kernel(reader, at);
		return true;
	case ROCPROF_BUFFER_MEMORY_COPY:
		if (record->size < sizeof(struct rocprof_copy_record))
			return false;
		read_copy(reader, at);
		return true;
	case ROCPROF_BUFFER_HIP_RUNTIME_API:
		if (record->size >= sizeof(struct rocprof_api))
			read_call(reader, at);
		else if (record->size == sizeof(struct rocprof_api_0))
			read_call_0(reader, at);
		else
			return false;
		return true;
	default:
		return true; /* of no use, or unknown */
	}
}

static size_t kept_bytes(uint64_t size)
{
	return (MIN((size_t)size, (size_t)ROCPROF_RECORD_MAX) + 7u) & ~(size_t)7;
}

size_t rocprof_record_copy(uint8_t *to, size_t room, const void *payload)
{
	uint64_t size;
	size_t kept;

	memcpy(&size, payload, sizeof(size));
	if (size < sizeof(struct rocprof_record) || size > RECORD_BYTES_BELIEVABLE)
		return 0;
	kept = kept_bytes(size);
	if (kept > room)
		return 0;
	memcpy(to, payload, MIN((size_t)size, kept));
	return kept;
}

void rocprof_reader_begin(struct rocprof_reader *reader, const struct gputrace_sink *sink,
			  int64_t offset_ns)
{
	reader->sink = sink;
	reader->offset_ns = offset_ns;
	reader->window++;
	reader->nameless = 0;
	memset(reader->copy_names, 0, sizeof(reader->copy_names));
	memset(reader->call_names, 0, sizeof(reader->call_names));
}

size_t rocprof_reader_read(void *rocprof_reader, uint8_t *buffer, size_t valid, void **at,
			   size_t most)
{
	struct rocprof_reader *reader = rocprof_reader;
	uint8_t *next = *at != NULL ? *at : buffer, *end = buffer + valid;
	size_t cnt = 0;

	while (cnt < most && next < end) {
		const struct rocprof_record *record = (const void *)next;

		if (record->size < sizeof(*record)) { /* nothing of rocprof_record_copy() */
			next = end;
			break;
		}
		if (!read_record(reader, record))
			reader->sink->lose(GPUTRACE_DROPPED, 1);
		next += kept_bytes(record->size);
		cnt++;
	}
	*at = next;
	return cnt;
}
