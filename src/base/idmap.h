/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from 64-bit keys to 32-bit values: correlations, Python ids, hashes.
 * Open addressing with linear probing; 12 bytes a slot at most 3/4 full.
 */
#pragma once

#include "base/base.h"

#define IDMAP_NONE UINT32_MAX

struct idmap {
	uint64_t *keys;
	uint32_t *values; /* IDMAP_NONE marks a free slot */
	size_t cnt, slot_cnt;
};

/* A zeroed map is empty and valid. */
void idmap_done(struct idmap *map);

/* Sets key to value (not IDMAP_NONE). Returns 0 or -ENOMEM. */
_must_check_ int idmap_set(struct idmap *map, uint64_t key, uint32_t value);

/* Value of key, IDMAP_NONE when absent. */
uint32_t idmap_get(const struct idmap *map, uint64_t key);
