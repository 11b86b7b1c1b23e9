/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: each distinct text is stored once and named by a dense
 * 32-bit id, in order of first appearance. Id 0 is always the empty string.
 */
#pragma once

#include "base/arena.h"
#include "base/base.h"

#define STRTAB_NONE UINT32_MAX

struct strtab_entry {
	const char *text; /* NUL-terminated, in the table's arena */
	uint32_t len;
	uint32_t hash; /* low half of XXH3-64: saves most string compares */
};

struct strtab {
	struct arena arena;
	struct strtab_entry *entries; /* by id */
	size_t cnt, cap;
	uint32_t *slots; /* open addressing, id + 1, 0 is free */
	size_t slot_cnt; /* power of two */
};

/* Returns 0 or -ENOMEM. strtab_done() is fine on a zeroed table. */
_must_check_ int strtab_init(struct strtab *table);
void strtab_done(struct strtab *table);

/* Id of text[len], added when new; STRTAB_NONE when out of memory. O(len). */
_must_check_ uint32_t strtab_intern(struct strtab *table, const char *text, size_t len);

/* Id of text[len] or STRTAB_NONE when it is not in the table. */
uint32_t strtab_find(const struct strtab *table, const char *text, size_t len);

/* Text of an id; "" for an id out of range. */
static inline const char *strtab_text(const struct strtab *table, uint32_t id)
{
	return id < table->cnt ? table->entries[id].text : "";
}
