/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strtab.h"

#include "base/vec.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS 256u

static uint32_t text_hash(const char *text, size_t len)
{
	return (uint32_t)XXH3_64bits(text, len);
}

int strtab_init(struct strtab *table)
{
	*table = (struct strtab){ 0 };
	arena_init(&table->arena);
	table->slots = calloc(FIRST_SLOTS, sizeof(*table->slots));
	if (table->slots == NULL)
		return -ENOMEM;
	table->slot_cnt = FIRST_SLOTS;
	if (strtab_intern(table, "", 0) == STRTAB_NONE) {
		strtab_done(table);
		return -ENOMEM;
	}
	return 0;
}

void strtab_done(struct strtab *table)
{
	arena_done(&table->arena);
	free(table->entries);
	free(table->slots);
	*table = (struct strtab){ 0 };
}

/* Slot that holds text, or the free slot where it belongs. */
static size_t slot_of(const struct strtab *table, const char *text, size_t len, uint32_t hash)
{
	size_t mask = table->slot_cnt - 1, slot = hash & mask;

	while (table->slots[slot] != 0) {
		const struct strtab_entry *e = &table->entries[table->slots[slot] - 1];

		if (e->hash == hash && e->len == len && memcmp(e->text, text, len) == 0)
			break;
		slot = (slot + 1) & mask;
	}
	return slot;
}

static int slots_grow(struct strtab *table)
{
	size_t cnt = table->slot_cnt * 2;
	uint32_t *slots = calloc(cnt, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	for (size_t id = 0; id < table->cnt; id++) {
		size_t slot = table->entries[id].hash & (cnt - 1);

		while (slots[slot] != 0)
			slot = (slot + 1) & (cnt - 1);
		slots[slot] = (uint32_t)id + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->slot_cnt = cnt;
	return 0;
}

uint32_t strtab_intern(struct strtab *table, const char *text, size_t len)
{
	uint32_t hash = text_hash(text, len);
	size_t slot = slot_of(table, text, len, hash);
	struct strtab_entry *e;
	char *copy;

	if (table->slots[slot] != 0)
		return table->slots[slot] - 1;
	if (len >= UINT32_MAX || table->cnt >= STRTAB_NONE - 1)
		return STRTAB_NONE;
	if (vec_reserve_bytes((void **)&table->entries, &table->cap, table->cnt + 1,
			      sizeof(*table->entries)) < 0)
		return STRTAB_NONE;
	if (table->cnt * 4 >= table->slot_cnt * 3) {
		if (slots_grow(table) < 0)
			return STRTAB_NONE;
		slot = slot_of(table, text, len, hash);
	}
	copy = arena_strndup(&table->arena, text, len);
	if (copy == NULL)
		return STRTAB_NONE;
	e = &table->entries[table->cnt++];
	*e = (struct strtab_entry){ .text = copy, .len = (uint32_t)len, .hash = hash };
	table->slots[slot] = (uint32_t)table->cnt;
	return (uint32_t)table->cnt - 1;
}

uint32_t strtab_find(const struct strtab *table, const char *text, size_t len)
{
	size_t slot = slot_of(table, text, len, text_hash(text, len));

	return table->slots[slot] != 0 ? table->slots[slot] - 1 : STRTAB_NONE;
}
