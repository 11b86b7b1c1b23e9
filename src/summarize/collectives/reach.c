/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/reach.h"

#include <limits.h>
#include <string.h>

/* NULL: unknown. */
static const char *host_of(const struct rank_hosts *hosts, int rank)
{
	size_t low = 0, high = hosts->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (hosts->list[mid].rank == rank)
			return hosts->list[mid].host;
		if (hosts->list[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int count_here(const struct rank_hosts *hosts)
{
	int cnt = 0;

	for (size_t i = 0; i < hosts->cnt; i++)
		cnt += strcmp(hosts->list[i].host, hosts->here) == 0;
	return cnt;
}

static enum reach reach_of_rank(const struct rank_hosts *hosts, int rank)
{
	const char *host = host_of(hosts, rank);

	if (host == NULL)
		return hosts->complete ? REACH_ACROSS : REACH_UNKNOWN;
	return strcmp(host, hosts->here) == 0 ? REACH_INSIDE : REACH_ACROSS;
}

/* Parses the next number of "[0, 1, ..., 7]". Returns -1 at the end; sets *vague at an ellipsis. */
static int next_rank(const char **at, bool *vague)
{
	int64_t rank = -1;

	for (; **at != '\0' && (**at < '0' || **at > '9'); (*at)++)
		*vague |= strchr("[], ", **at) == NULL;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		rank = MIN(MAX(rank, (int64_t)0) * 10 + (**at - '0'), (int64_t)INT_MAX);
	return (int)rank;
}

static enum reach reach_of_list(const struct rank_hosts *hosts, const struct reach_group *group)
{
	const char *at = group->ranks;
	bool vague = false;
	int cnt = 0;

	for (int rank; (rank = next_rank(&at, &vague)) >= 0; cnt++) {
		enum reach reach = reach_of_rank(hosts, rank);

		if (reach == REACH_ACROSS)
			return reach;
		vague |= reach == REACH_UNKNOWN;
	}
	if (hosts->complete && group->size > count_here(hosts))
		return REACH_ACROSS;
	return vague || cnt == 0 || cnt < group->size ? REACH_UNKNOWN : REACH_INSIDE;
}

enum reach reach_of(const struct rank_hosts *hosts, const struct reach_group *group)
{
	enum reach reach;

	if (group->size == 1)
		return REACH_INSIDE;
	if (hosts->here == NULL)
		return REACH_UNKNOWN;
	reach = reach_of_list(hosts, group);
	if (reach == REACH_UNKNOWN && group->world_size > 0 && group->size <= group->world_size &&
	    group->world_size <= count_here(hosts))
		return REACH_INSIDE;
	return reach;
}
