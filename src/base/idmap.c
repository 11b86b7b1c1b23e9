/* SPDX-License-Identifier: Apache-2.0 */
#include "base/idmap.h"

#include <errno.h>
#include <string.h>

#define FIRST_SLOTS 64u

static size_t key_slot(uint64_t key, size_t slot_cnt)
{
	/* Multiplicative mixing (Knuth 6.4): ids are often consecutive. */
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ULL;
	return (size_t)(key >> 32) & (slot_cnt - 1);
}

void idmap_done(struct idmap *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct idmap){ 0 };
}

static void slots_put(uint64_t *keys, uint32_t *values, size_t slot_cnt, uint64_t key,
		      uint32_t value)
{
	size_t slot = key_slot(key, slot_cnt);

	while (values[slot] != IDMAP_NONE && keys[slot] != key)
		slot = (slot + 1) & (slot_cnt - 1);
	keys[slot] = key;
	values[slot] = value;
}

static int idmap_grow(struct idmap *map)
{
	size_t slot_cnt = map->slot_cnt == 0 ? FIRST_SLOTS : map->slot_cnt * 2;
	uint64_t *keys = calloc(slot_cnt, sizeof(*keys));
	uint32_t *values = malloc(slot_cnt * sizeof(*values));

	if (keys == NULL || values == NULL) {
		free(keys);
		free(values);
		return -ENOMEM;
	}
	memset(values, 0xff, slot_cnt * sizeof(*values));
	for (size_t i = 0; i < map->slot_cnt; i++) {
		if (map->values[i] != IDMAP_NONE)
			slots_put(keys, values, slot_cnt, map->keys[i], map->values[i]);
	}
	free(map->keys);
	free(map->values);
	map->keys = keys;
	map->values = values;
	map->slot_cnt = slot_cnt;
	return 0;
}

int idmap_set(struct idmap *map, uint64_t key, uint32_t value)
{
	bool fresh;

	if (value == IDMAP_NONE)
		return -EINVAL;
	fresh = idmap_get(map, key) == IDMAP_NONE;
	if (fresh && (map->cnt + 1) * 4 > map->slot_cnt * 3) {
		int ret = idmap_grow(map);

		if (ret < 0)
			return ret;
	}
	slots_put(map->keys, map->values, map->slot_cnt, key, value);
	map->cnt += fresh;
	return 0;
}

uint32_t idmap_get(const struct idmap *map, uint64_t key)
{
	size_t slot;

	if (map->slot_cnt == 0)
		return IDMAP_NONE;
	slot = key_slot(key, map->slot_cnt);
	while (map->values[slot] != IDMAP_NONE) {
		if (map->keys[slot] == key)
			return map->values[slot];
		slot = (slot + 1) & (map->slot_cnt - 1);
	}
	return IDMAP_NONE;
}
