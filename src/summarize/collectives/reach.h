/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether all members of a collective's group are on one host: only then does it use NVLink alone;
 * otherwise the links between hosts limit it.
 * Source: PerfTracker section 4.2, "intra-worker" and "inter-worker" communication.
 */
#pragma once

#include "base/base.h"

enum reach { REACH_UNKNOWN, REACH_INSIDE, REACH_ACROSS, REACH_CNT };

struct rank_host {
	int rank;
	const char *host;
};

/* The known hosts of ranks. Zeroed: none known. */
struct rank_hosts {
	const struct rank_host *list; /* ascending by rank, distinct; borrowed */
	size_t cnt;
	const char *here; /* the worker's own host; NULL: unknown */
	bool complete;	  /* ranks that are not listed are on none of these hosts */
};

/* A group as its collectives' arguments describe it. */
struct reach_group {
	const char *ranks; /* "[0, 1]", long ones "[0, 1, ..., 7]"; "" unknown */
	int size;	   /* 0 or less: unknown */
	int world_size;	   /* likewise */
};

/* The reach of a group that includes the worker. Any field may be unknown. O(ranks listed). */
enum reach reach_of(const struct rank_hosts *hosts, const struct reach_group *group);
