/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/layout.h"

#include <errno.h>

#define WORKERS_MAX (1 << 20)
#define FULL_HOST 8
#define SMALL_JOB 32 /* in smaller jobs hosts are smaller, so that a job still has several */

static int largest_divisor(int number, int wish)
{
	int best = wish > 0 && wish < number ? wish : number;

	while (number % best != 0)
		best--;
	return best;
}

static int host_gpus_of(int wish, int worker_cnt)
{
	if (wish > 0)
		return MIN(wish, worker_cnt);
	return worker_cnt >= SMALL_JOB ? FULL_HOST : MAX(worker_cnt / 4, 1);
}

int layout_init(const struct layout *wish, struct layout *ret, struct err *err)
{
	struct layout l = *wish;

	if (l.worker_cnt < 1 || l.worker_cnt > WORKERS_MAX)
		return err_set(err, EINVAL, "workers: expected 1..%d, found %d", WORKERS_MAX,
			       l.worker_cnt);
	l.host_gpus = host_gpus_of(l.host_gpus, l.worker_cnt);
	l.rack_hosts = l.rack_hosts > 0 ? l.rack_hosts : 4;
	l.tp = largest_divisor(l.worker_cnt, MIN(MAX(l.tp, 1), l.host_gpus));
	l.pp = largest_divisor(l.worker_cnt / l.tp, MAX(l.pp, 1));
	l.dp = l.worker_cnt / (l.tp * l.pp);
	l.ep = largest_divisor(l.dp, MAX(l.ep, 1));
	l.shard = largest_divisor(l.dp, l.shard);
	*ret = l;
	return 0;
}

int layout_group_size(const struct layout *layout, enum group_kind kind)
{
	switch (kind) {
	case GROUP_TENSOR:
		return layout->tp;
	case GROUP_DATA:
		return layout->shard;
	case GROUP_REPLICA:
		return layout->dp / layout->shard;
	case GROUP_EXPERT:
		return layout->ep;
	case GROUP_KIND_CNT:
		break;
	}
	return 1;
}

uint32_t layout_group_cnt(const struct layout *layout, enum group_kind kind)
{
	return (uint32_t)(layout->worker_cnt / layout_group_size(layout, kind));
}

/* Members are consecutive in the data-parallel index: size members, step apart. */
static struct group data_group(const struct layout *layout, int rank, int size, int step)
{
	int tensor = rank % layout->tp, input = layout_input(layout, rank);
	int place = input / step % size, block = input / (step * size), offset = input % step;
	int blocks = layout->dp / (step * size);

	return (struct group){
		.first = rank - place * step * layout->tp,
		.stride = step * layout->tp,
		.size = size,
		.index =
			(uint32_t)(((layout_stage(layout, rank) * blocks + block) * step + offset) *
					   layout->tp +
				   tensor),
	};
}

struct group layout_group(const struct layout *layout, enum group_kind kind, int rank)
{
	int size = layout_group_size(layout, kind);

	if (kind == GROUP_TENSOR)
		return (struct group){ rank - rank % size, 1, size, (uint32_t)(rank / size) };
	if (kind == GROUP_REPLICA)
		return data_group(layout, rank, size, layout->shard);
	return data_group(layout, rank, size, 1);
}
