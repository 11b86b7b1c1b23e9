/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/stacknodes.h"

#include "agent/core/nametable.h"

#include <errno.h>

#define CODE_SLOTS 8192u /* power of two */
#define CODE_TRIES 16u

static struct code_slot {
	uintptr_t code; /* 0: free */
	uint64_t stamp;
	uint32_t frame;
} slots[CODE_SLOTS];

/* Returns 0, -ENOENT: the code object was freed, or -ENOSPC: the recorder has no room for it. */
static int frame_of(const struct pystack_process *process, uintptr_t code, uint64_t stamp,
		    uint32_t *ret)
{
	uintptr_t hash = (code + stamp) * 0x9e3779b97f4a7c15u >> 40; /* stamps differ by process */
	struct code_slot *slot = NULL;
	struct pycode names;
	uint32_t frame;

	for (size_t i = 0; i < CODE_TRIES; i++) {
		slot = &slots[(hash + i) & (CODE_SLOTS - 1)];
		if (slot->code == code && slot->stamp == stamp) {
			*ret = slot->frame;
			return 0;
		}
		if (slot->code == 0)
			break;
	}
	if (pystack_code(process, code, &names) < 0)
		return -ENOENT;
	frame = nametable_frame(names.file, names.name, names.first_line);
	if (frame == 0) /* not cached: the next try may find room, or no other thread adding it */
		return -ENOSPC;
	*slot = (struct code_slot){ code, stamp, frame };
	*ret = frame;
	return 0;
}

int stacknodes_find(const struct pystack_process *process, const uintptr_t *codes, size_t depth,
		    uint32_t *ret)
{
	static uint64_t stamps[PYSTACK_DEPTH];
	static uint32_t frames[PYSTACK_DEPTH];
	uint32_t node;

	if (pystack_stamps(process, codes, depth, stamps) != depth)
		return -ENOENT;
	for (size_t i = depth; i > 0; i--) {
		int error = frame_of(process, codes[i - 1], stamps[i - 1], &frames[i - 1]);

		if (error < 0)
			return error;
	}
	node = nametable_stack(frames, depth);
	if (node == 0)
		return -ENOSPC;
	*ret = node;
	return 0;
}
