/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process groups by the threads that serve them. gloo describes no group with a collective, but
 * each gloo group has threads of its own, and a collective ends on one of them. The Python hook sees
 * which threads are new once a group was made (python/perftracker/_torch.py, _wrap_groups()).
 */
#pragma once

#include "agent/torch/torchcomms.h"

#define TORCHGROUPS_MAX 256u
#define TORCHGROUPS_THREADS 1024u

struct torchgroup {
	uint32_t name;			  /* a string of the flight recorder */
	uint32_t size;			  /* ranks */
	uint16_t first_rank, rank_stride; /* as in struct torchcomms */
};

/*
 * One thread at a time calls it, with the interpreter lock held. Groups and threads beyond the
 * limits stay unknown. A thread id that is used again belongs to the newer group.
 */
void torchgroups_add(const struct torchgroup *group, const uint32_t *tids, size_t cnt);

/*
 * On any thread, which is tid: fills group_name, group_size and the ranks of *about, which has
 * none, if the thread serves a group. O(threads added).
 */
void torchgroups_fill(uint32_t tid, struct torchcomms *about);
