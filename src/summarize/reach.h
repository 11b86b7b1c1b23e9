/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the members of a collective's group are all on one host: only then they
 * talk over NVLink alone, else the way to the other hosts sets the pace.
 * Source: PerfTracker section 4.2, "intra-worker" and "inter-worker" communication.
 */
#pragma once

#include "base/base.h"

enum reach { REACH_UNKNOWN, REACH_INSIDE, REACH_ACROSS, REACH_CNT };

struct rank_host {
	int rank;
	const char *host;
};

/* What is known of where ranks are. Zeroed: nothing. */
struct rank_hosts {
	const struct rank_host *list; /* ascending by rank, distinct; borrowed */
	size_t cnt;
	const char *here; /* the worker's own host; NULL: unknown */
	bool complete;	  /* who isn't listed is on none of these hosts */
};

/* A group as its collectives tell of it. */
struct reach_group {
	const char *ranks; /* "[0, 1]", of long ones "[0, 1, ..., 7]"; "" unknown */
	int size;	   /* 0 or less: unknown */
	int world_size;	   /* likewise */
};

/* Of a group that the worker is in. Anything may be unknown. O(ranks listed). */
enum reach reach_of(const struct rank_hosts *hosts, const struct reach_group *group);
