/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of ranks: in hosts and racks, and in the groups of tensor, expert, data and pipeline
 * parallelism. Ranks are numbered as in Megatron-LM: tensor parallel innermost, then data, pipeline
 * outermost. Everything is computed; a job of a million workers needs no table.
 */
#pragma once

#include "base/err.h"

enum group_kind {
	GROUP_TENSOR,
	GROUP_DATA,    /* gradients and sharded parameters */
	GROUP_REPLICA, /* the same shard in other data groups, if sharding is limited */
	GROUP_EXPERT,
	GROUP_KIND_CNT,
};

struct layout {
	int worker_cnt;
	int host_gpus;	/* workers on a host */
	int rack_hosts; /* hosts in a rack */
	int tp, pp, ep;
	int dp;	   /* data-parallel width: worker_cnt / (tp * pp) */
	int shard; /* of them in one data group; dp if sharding is not limited */
};

/* Ranks first, first + stride, ...: size of them; index numbers the groups of one kind. */
struct group {
	int first, stride, size;
	uint32_t index;
};

/*
 * Completes ret from the requested widths: each becomes the largest divisor of the remaining width
 * that does not exceed the request (0: no request, 1 or no limit). host_gpus 0: 8 from 32 workers
 * on, else a quarter of them. Returns 0, or -EINVAL with a line in err if worker_cnt is not in
 * 1..2^20.
 */
_must_check_ int layout_init(const struct layout *wish, struct layout *ret, struct err *err);

struct group layout_group(const struct layout *layout, enum group_kind kind, int rank);
uint32_t layout_group_cnt(const struct layout *layout, enum group_kind kind);
int layout_group_size(const struct layout *layout, enum group_kind kind);

static inline int layout_stage(const struct layout *layout, int rank)
{
	return rank / (layout->tp * layout->dp);
}

/* The part of the input that a rank works on: its data-parallel index. */
static inline int layout_input(const struct layout *layout, int rank)
{
	return rank / layout->tp % layout->dp;
}

/* The rank with the same input and tensor index in another stage. */
static inline int layout_at_stage(const struct layout *layout, int rank, int stage)
{
	return rank + (stage - layout_stage(layout, rank)) * layout->tp * layout->dp;
}

static inline int layout_host(const struct layout *layout, int rank)
{
	return rank / layout->host_gpus;
}

/* Two neighboring GPUs share a bonded pair of NICs (PerfTracker section 3). */
static inline int layout_rail(const struct layout *layout, int rank)
{
	return rank % layout->host_gpus / 2;
}
