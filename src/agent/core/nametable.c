/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/nametable.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Open addressing, at most half full. */
#define STRING_SLOTS (2 * FLIGHT_STRING_CNT)
#define FRAME_SLOTS (2 * FLIGHT_FRAME_CNT)
#define NODE_SLOTS (2 * FLIGHT_NODE_CNT)

#define NAMES_HASH_BYTES 17u /* '~' and 16 hexadecimal digits */

/* Half of the names is kept for what is not made up at run time: functions above all. */
#define LABEL_STRING_CNT (FLIGHT_STRING_CNT / 2)
#define LABEL_TEXT_BYTES (FLIGHT_TEXT_BYTES / 2)

/* Free nodes for one that a stack may add, once less than half of them is free. */
#define NODE_RESERVE 1024u

/* A slot is claimed by its hash; its id follows when the entry can be read. */
struct string_slot {
	_Atomic uint64_t hash;
	_Atomic uint32_t id;
	uint32_t reserved;
};

struct index {
	struct string_slot strings[STRING_SLOTS];
	_Atomic uint32_t frames[FRAME_SLOTS]; /* ids; 0: free */
	uint32_t nodes[NODE_SLOTS];
	/* The agent's own: those in the recorder may be overwritten by other processes. */
	uint32_t frame_cnt, node_cnt;
};

static struct flight *flight;
static struct index *nametable_index;
static _Atomic bool adding_frame; /* taken by try only: no thread waits for another */

int nametable_open(struct flight *of)
{
	if (nametable_index == NULL) {
		void *memory = mmap(NULL, sizeof(struct index), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return -ENOMEM;
		nametable_index = memory;
	} else if (madvise(nametable_index, sizeof(struct index), MADV_DONTNEED) < 0) {
		return -ENOMEM; /* the ids of an older recorder would stay */
	}
	flight = of;
	nametable_index->frame_cnt = nametable_index->node_cnt = 1;
	atomic_store(&of->string_cnt, 1); /* entry 0 of each table is "none", the root */
	atomic_store(&of->frame_cnt, 1);
	atomic_store(&of->node_cnt, 1);
	atomic_store(&adding_frame, false);
	return 0;
}

static uint64_t mix(uint64_t value)
{
	value ^= value >> 32;
	value *= 0x9e3779b97f4a7c15u;
	value ^= value >> 29;
	return value;
}

static uint64_t hash_text(const char *text, size_t len)
{
	uint64_t hash = len * 0x9e3779b97f4a7c15u, word;

	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, text, len);
	hash = mix(hash ^ word ^ 0xff);
	return hash != 0 ? hash : 1;
}

/* How much of the table of strings some names may fill. */
struct room {
	uint32_t string_cnt, text_bytes;
};

static bool has_room(const struct room *room, size_t len)
{
	return atomic_load_explicit(&flight->string_cnt, memory_order_relaxed) < room->string_cnt &&
	       atomic_load_explicit(&flight->text_len, memory_order_relaxed) + (uint64_t)len <=
		       room->text_bytes;
}

static uint32_t no_string(void)
{
	atomic_fetch_add_explicit(&flight->drops.strings, 1, memory_order_relaxed);
	return 0;
}

/* Writes the entry of a claimed slot. Returns its id, 0 when other threads took the last room. */
static uint32_t add_string(const char *text, size_t len)
{
	uint32_t id = atomic_fetch_add_explicit(&flight->string_cnt, 1, memory_order_relaxed);
	uint32_t off;

	if (id >= FLIGHT_STRING_CNT) {
		atomic_store_explicit(&flight->string_cnt, FLIGHT_STRING_CNT, memory_order_relaxed);
		return no_string();
	}
	off = atomic_fetch_add_explicit(&flight->text_len, (uint32_t)len, memory_order_relaxed);
	if (off > FLIGHT_TEXT_BYTES - len) {
		atomic_store_explicit(&flight->text_len, FLIGHT_TEXT_BYTES, memory_order_relaxed);
		return no_string(); /* the entry stays empty: no record refers to it */
	}
	memcpy(&flight->text[off], text, len);
	flight->strings[id].off = off;
	__atomic_store_n(&flight->strings[id].len, (uint32_t)len, __ATOMIC_RELEASE);
	return id;
}

/*
 * A longer name keeps its beginning; the hash of the whole distinguishes it from names with the
 * same beginning, such as kernels that differ in the last template argument only.
 */
static size_t shorten(const char *text, size_t len, char ret[static FLIGHT_STRING_MAX])
{
	static const char digits[] = "0123456789abcdef";
	size_t kept = FLIGHT_STRING_MAX - NAMES_HASH_BYTES;
	uint64_t hash = hash_text(text, len);

	while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80)
		kept--; /* no partial UTF-8 character */
	memcpy(ret, text, kept);
	ret[kept++] = '~';
	for (int shift = 60; shift >= 0; shift -= 4)
		ret[kept++] = digits[hash >> shift & 0xf];
	return kept;
}

/* A name without room takes no slot: full slots would make each search long. */
static uint32_t string_id(const char *text, size_t len, const struct room *room)
{
	char shortened[FLIGHT_STRING_MAX];
	uint64_t hash;

	if (len > FLIGHT_STRING_MAX) {
		len = shorten(text, len, shortened);
		text = shortened;
	}
	hash = hash_text(text, len);
	for (size_t i = 0; i < STRING_SLOTS / 4; i++) {
		struct string_slot *slot = &nametable_index->strings[(hash + i) % STRING_SLOTS];
		uint64_t found = atomic_load_explicit(&slot->hash, memory_order_acquire);
		uint32_t id;

		if (found == 0 && !has_room(room, len))
			return no_string();
		if (found == 0 && atomic_compare_exchange_strong(&slot->hash, &found, hash)) {
			id = add_string(text, len);
			atomic_store_explicit(&slot->id, id, memory_order_release);
			return id;
		}
		if (found == hash)
			return atomic_load_explicit(&slot->id, memory_order_acquire);
	}
	return no_string();
}

uint32_t nametable_string(const char *text, size_t len)
{
	static const struct room all = { FLIGHT_STRING_CNT, FLIGHT_TEXT_BYTES };

	return string_id(text, len, &all);
}

uint32_t nametable_label(const char *text, size_t len)
{
	static const struct room half = { LABEL_STRING_CNT, LABEL_TEXT_BYTES };

	return string_id(text, len, &half);
}

static bool frame_equal(const struct flight_frame *a, const struct flight_frame *b)
{
	return a->file == b->file && a->name == b->name && a->first_line == b->first_line;
}

/* Its id, or 0 and the slot that is free for it. */
static uint32_t find_frame(const struct flight_frame *frame, size_t *ret_slot)
{
	uint64_t at = mix((uint64_t)frame->file << 32 | frame->name) + frame->first_line;
	uint32_t id;

	for (;; at++) {
		*ret_slot = at % FRAME_SLOTS;
		id = atomic_load_explicit(&nametable_index->frames[*ret_slot],
					  memory_order_acquire);
		if (id == 0 || frame_equal(&flight->frames[id], frame))
			return id;
	}
}

/* One thread at a time, so that all entries below the count are readable. */
static uint32_t add_frame(const struct flight_frame *frame)
{
	uint32_t cnt = nametable_index->frame_cnt;
	size_t slot;
	uint32_t id = find_frame(frame, &slot);

	if (id != 0)
		return id;
	if (cnt == FLIGHT_FRAME_CNT)
		return 0;
	flight->frames[cnt] = *frame;
	atomic_store_explicit(&nametable_index->frames[slot], cnt, memory_order_release);
	nametable_index->frame_cnt = cnt + 1;
	atomic_store_explicit(&flight->frame_cnt, cnt + 1, memory_order_release);
	return cnt;
}

static uint32_t no_frame(void)
{
	atomic_fetch_add_explicit(&flight->drops.frames, 1, memory_order_relaxed);
	return 0;
}

uint32_t nametable_frame(const char *file, const char *name, uint32_t first_line)
{
	struct flight_frame frame = { .file = nametable_string(file, strlen(file)),
				      .name = nametable_string(name, strlen(name)),
				      .first_line = first_line };
	size_t slot;
	uint32_t id;

	/* Two functions without a name would be merged, with the time of both. */
	if (frame.file == 0 || frame.name == 0)
		return no_frame();
	id = find_frame(&frame, &slot);
	if (id != 0)
		return id;
	if (atomic_exchange_explicit(&adding_frame, true, memory_order_acquire))
		return 0;
	id = add_frame(&frame);
	atomic_store_explicit(&adding_frame, false, memory_order_release);
	return id != 0 ? id : no_frame();
}

/* Its id, or 0 and the slot that is free for it. */
static uint32_t find_node(uint32_t parent, uint32_t frame, size_t *ret_slot)
{
	uint64_t at = mix((uint64_t)parent << 32 | frame);
	uint32_t id;

	for (;; at++) {
		*ret_slot = at % NODE_SLOTS;
		id = nametable_index->nodes[*ret_slot];
		if (id == 0 ||
		    (flight->nodes[id].parent == parent && flight->nodes[id].frame == frame))
			return id;
	}
}

/* The caller checked that there is room. */
static uint32_t add_node(uint32_t parent, uint32_t frame)
{
	uint32_t cnt = nametable_index->node_cnt;
	size_t slot;

	(void)find_node(parent, frame, &slot);
	flight->nodes[cnt] = (struct flight_node){ parent, frame };
	nametable_index->nodes[slot] = cnt;
	nametable_index->node_cnt = cnt + 1;
	atomic_store_explicit(&flight->node_cnt, cnt + 1, memory_order_release);
	return cnt;
}

/*
 * A recursion that branches differently each time would fill the table in seconds. Stacks that need
 * many new nodes are refused long before those that need few, such as a function under known
 * callers.
 */
static size_t node_room(void)
{
	size_t left = FLIGHT_NODE_CNT - nametable_index->node_cnt;

	return left >= FLIGHT_NODE_CNT / 2 ? left : (left + NODE_RESERVE - 1) / NODE_RESERVE;
}

uint32_t nametable_stack(const uint32_t *frames, size_t depth)
{
	uint32_t node = 0, id;
	size_t slot;

	for (; depth > 0; depth--, node = id) {
		id = find_node(node, frames[depth - 1], &slot);
		if (id == 0)
			break;
	}
	if (depth > node_room()) {
		atomic_fetch_add_explicit(&flight->drops.nodes, 1, memory_order_relaxed);
		return 0;
	}
	for (; depth > 0; depth--)
		node = add_node(node, frames[depth - 1]);
	return node;
}
