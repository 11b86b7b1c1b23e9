/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fingerprint/fpshare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int fpshare_init(struct fpshare *share)
{
	*share = (struct fpshare){ 0 };
	return strtab_init(&share->texts);
}

void fpshare_done(struct fpshare *share)
{
	strtab_done(&share->texts);
	idmap_done(&share->tree_of);
	vec_done(&share->trees);
	free(share->scratch);
	*share = (struct fpshare){ 0 };
}

const char *fpshare_text(struct fpshare *share, const char *text, size_t len)
{
	uint32_t id = strtab_intern(&share->texts, text, len);

	return id != STRTAB_NONE ? strtab_text(&share->texts, id) : NULL;
}

struct fp_frame *fpshare_frames(struct fpshare *share, size_t cnt)
{
	if (cnt >= share->scratch_cnt) {
		struct fp_frame *more = calloc(cnt + 1, sizeof(*more));

		if (more == NULL)
			return NULL;
		free(share->scratch);
		share->scratch = more;
		share->scratch_cnt = cnt + 1;
		return more;
	}
	memset(share->scratch, 0, (cnt + 1) * sizeof(*share->scratch));
	return share->scratch;
}

/* Names are compared as pointers: equal texts of one table are one. */
static bool is_tree(const struct fpshare_tree *tree, const struct fp_frame *frames, size_t cnt)
{
	if (tree->cnt != cnt)
		return false;
	for (size_t i = 0; i < cnt; i++) {
		const struct fp_frame *a = &tree->frames[i], *b = &frames[i];

		if (!funckey_equal(a->key, b->key) || a->parent != b->parent ||
		    a->kind != b->kind || a->name != b->name)
			return false;
	}
	return true;
}

static uint64_t hash_of(const struct fp_frame *frames, size_t cnt)
{
	uint64_t hash = cnt;

	for (size_t i = 0; i < cnt; i++) {
		const uint64_t parts[] = { hash, frames[i].key.hi, frames[i].key.lo };

		hash = XXH3_64bits(parts, sizeof(parts));
	}
	return hash;
}

static struct fp_frame *add_tree(struct fpshare *share, const struct fp_frame *frames, size_t cnt,
				 uint64_t hash)
{
	struct fpshare_tree fresh = { .cnt = cnt };

	fresh.frames = arena_calloc(&share->texts.arena, cnt + 1, sizeof(*fresh.frames));
	if (fresh.frames == NULL || vec_push(&share->trees, fresh) < 0)
		return NULL;
	memcpy(fresh.frames, frames, cnt * sizeof(*frames));
	return idmap_set(&share->tree_of, hash, (uint32_t)share->trees.cnt - 1) == 0 ? fresh.frames
										     : NULL;
}

struct fp_frame *fpshare_tree(struct fpshare *share, const struct fp_frame *frames, size_t cnt)
{
	uint64_t hash = hash_of(frames, cnt);
	uint32_t known = idmap_get(&share->tree_of, hash);

	if (known != IDMAP_NONE && is_tree(&share->trees.data[known], frames, cnt))
		return share->trees.data[known].frames;
	return add_tree(share, frames, cnt, hash);
}
