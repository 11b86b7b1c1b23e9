/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stackmemo.h"

#include "base/splitmix.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void stackmemo_done(struct stackmemo *memo)
{
	idmap_done(&memo->by_hash);
	vec_done(&memo->entries);
}

uint64_t stackmemo_hash(const struct stacks_thread *thread, uint32_t from)
{
	uint64_t hash = splitmix_finish((uint64_t)from << 32 | thread->frame_cnt);

	for (size_t i = 0; i < thread->frame_cnt; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		hash ^= frame->offset + frame->line;
		if (frame->function != NULL)
			hash = XXH3_64bits_withSeed(frame->function, strlen(frame->function), hash);
		else
			hash = splitmix_finish(hash);
	}
	return hash;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_frame(const struct stacks_frame *a, const struct stacks_frame *b)
{
	return a->kind == b->kind && a->interpreter == b->interpreter && a->line == b->line &&
	       a->offset == b->offset && same_text(a->function, b->function) &&
	       same_text(a->file, b->file);
}

/* Whether both are shown alike: what stackview_pick() and the text of a frame depend on. */
static bool same_stack(const struct stacks_thread *a, const struct stacks_thread *b)
{
	if (a->frame_cnt != b->frame_cnt || a->runs_python != b->runs_python ||
	    a->mixed != b->mixed || a->end != b->end)
		return false;
	for (size_t i = 0; i < a->frame_cnt; i++)
		if (!same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

uint32_t stackmemo_find(const struct stackmemo *memo, const struct stacks_thread *thread,
			uint32_t from, uint64_t hash)
{
	const uint32_t index = idmap_get(&memo->by_hash, hash);
	const struct stackmemo_entry *entry;

	if (index == IDMAP_NONE)
		return IDMAP_NONE;
	entry = &memo->entries.data[index];
	return entry->from == from && same_stack(entry->thread, thread) ? entry->leaf : IDMAP_NONE;
}

int stackmemo_add(struct stackmemo *memo, uint64_t hash, const struct stackmemo_entry *entry)
{
	int error = 0;

	if (idmap_get(&memo->by_hash, hash) != IDMAP_NONE)
		return 0;
	error = vec_push(&memo->entries, *entry);
	return error < 0 ? error : idmap_set(&memo->by_hash, hash, (uint32_t)memo->entries.cnt - 1);
}
