/* SPDX-License-Identifier: Apache-2.0 */
#include "center/wire/fpnames.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS 256u

void fpnames_done(struct fpnames *names)
{
	arena_done(&names->arena);
	vec_done(&names->list);
	free(names->slots);
	*names = (struct fpnames){ 0 };
}

int fpname_id_cmp(struct fpname_id a, struct fpname_id b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	return (a.lo > b.lo) - (a.lo < b.lo);
}

size_t fpname_text_len(const char *text)
{
	return strnlen(text, FPNAMES_TEXT_MAX);
}

struct fpname_id fpname_id_of(struct fpname_id parent, struct funckey key, uint8_t kind,
			      const char *text, size_t len)
{
	XXH128_hash_t name = XXH3_128bits(text, len), all;
	uint64_t facts[] = { htole64(parent.hi), htole64(parent.lo),   htole64(key.hi),
			     htole64(key.lo),	 htole64(name.high64), htole64(name.low64),
			     htole64(kind) };
	struct fpname_id id;

	all = XXH3_128bits(facts, sizeof(facts));
	id = (struct fpname_id){ all.high64, all.low64 };
	/* fpname_none is reserved for "no frame". */
	if (fpname_id_equal(id, fpname_none))
		id.lo = 1;
	return id;
}

static uint32_t *find_slot(const struct fpnames *names, struct fpname_id id)
{
	size_t slot = id.lo & (names->slot_cnt - 1);

	while (names->slots[slot] != 0 &&
	       !fpname_id_equal(names->list.data[names->slots[slot] - 1].id, id))
		slot = (slot + 1) & (names->slot_cnt - 1);
	return &names->slots[slot];
}

static int grow_slots(struct fpnames *names)
{
	size_t slot_cnt = names->slot_cnt > 0 ? 2 * names->slot_cnt : FIRST_SLOTS;
	uint32_t *old = names->slots, *slots = calloc(slot_cnt, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	names->slots = slots;
	names->slot_cnt = slot_cnt;
	for (uint32_t i = 0; i < names->list.cnt; i++)
		*find_slot(names, names->list.data[i].id) = i + 1;
	free(old);
	return 0;
}

int fpnames_place(struct fpnames *names, struct fpname_id id, uint32_t *ret)
{
	struct fpname fresh = { .id = id, .parent = FRAME_NONE };
	uint32_t *slot;

	if (fpname_id_equal(id, fpname_none)) {
		*ret = FRAME_NONE;
		return 0;
	}
	/* At most 3/4 full, with room for the one that may be added. */
	if (4 * (names->list.cnt + 1) > 3 * names->slot_cnt && grow_slots(names) < 0)
		return -ENOMEM;
	slot = find_slot(names, id);
	if (*slot == 0) {
		if (names->list.cnt >= FPNAMES_MAX)
			return -ENOBUFS;
		if (vec_push(&names->list, fresh) < 0)
			return -ENOMEM;
		*slot = (uint32_t)names->list.cnt;
		names->unknown_cnt++;
	}
	*ret = *slot - 1;
	return 0;
}

uint32_t fpnames_find(const struct fpnames *names, struct fpname_id id)
{
	uint32_t slot;

	if (fpname_id_equal(id, fpname_none) || names->slot_cnt == 0)
		return FRAME_NONE;
	slot = *find_slot(names, id);
	return slot > 0 ? slot - 1 : FRAME_NONE;
}

int fpnames_learn(struct fpnames *names, uint32_t parent, struct funckey key, uint8_t kind,
		  const char *text, size_t len, uint32_t *ret)
{
	struct fpname_id above = parent == FRAME_NONE ? fpname_none : names->list.data[parent].id;
	struct fpname *name;
	const char *copy;
	uint32_t place;
	int error = fpnames_place(names, fpname_id_of(above, key, kind, text, len), &place);

	if (error < 0)
		return error;
	name = &names->list.data[place];
	if (name->text == NULL) {
		if (names->arena.total_bytes > FPNAMES_BYTES_MAX)
			return -ENOBUFS;
		copy = arena_strndup(&names->arena, text, len);
		if (copy == NULL)
			return -ENOMEM;
		name->key = key;
		name->text = copy;
		name->parent = parent;
		name->kind = kind;
		names->unknown_cnt--;
	}
	*ret = place;
	return 0;
}
