/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/torch/torchgroups.h"

#include <stdatomic.h>

static struct torchgroups {
	struct torchgroup groups[TORCHGROUPS_MAX];
	uint32_t group_cnt;
	/* tid << 32 | index in groups: written once, before thread_cnt */
	_Atomic uint64_t threads[TORCHGROUPS_THREADS];
	_Atomic uint32_t thread_cnt;
} torchgroups;

void torchgroups_add(const struct torchgroup *group, const uint32_t *tids, size_t cnt)
{
	uint32_t known = atomic_load_explicit(&torchgroups.thread_cnt, memory_order_relaxed);

	if (torchgroups.group_cnt == TORCHGROUPS_MAX || cnt > TORCHGROUPS_THREADS - known)
		return;
	torchgroups.groups[torchgroups.group_cnt] = *group;
	for (size_t i = 0; i < cnt; i++)
		atomic_store_explicit(&torchgroups.threads[known + i],
				      (uint64_t)tids[i] << 32 | torchgroups.group_cnt,
				      memory_order_relaxed);
	torchgroups.group_cnt++;
	atomic_store_explicit(&torchgroups.thread_cnt, known + (uint32_t)cnt, memory_order_release);
}

void torchgroups_fill(uint32_t tid, struct torchcomms *about)
{
	uint32_t i = atomic_load_explicit(&torchgroups.thread_cnt, memory_order_acquire);
	const struct torchgroup *group;
	uint64_t thread;

	while (i-- > 0) {
		thread = atomic_load_explicit(&torchgroups.threads[i], memory_order_relaxed);
		if (thread >> 32 != tid)
			continue;
		group = &torchgroups.groups[(uint32_t)thread];
		about->group_name = group->name;
		about->group_size = group->size;
		about->first_rank = group->first_rank;
		about->rank_stride = group->rank_stride;
		return;
	}
}
