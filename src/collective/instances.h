/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which executions are one collective, where the clocks of all ranks are aligned: by sequence
 * number where there is one. Else by order: all members of a group execute its collectives in
 * the same order, and no execution ends before the last one has started. The executions of a
 * rank are laid beside those found so far, name by name; where one is missing, the rest is
 * shifted by what makes the ends of the next few agree best.
 * Source: docs/method.md, "Which executions are one collective".
 */
#pragma once

#include "base/base.h"

/* One rank's execution of a collective. */
struct instance_event {
	int64_t start_ns, end_ns; /* on the rank's clock */
	uint64_t key;		  /* equal: may be the same collective; of its name and its group */
	int64_t seq;		  /* its number in the group; -1: unknown */
	uint32_t instance; /* instances_find(): equal on all ranks of one collective; 0: none */
};

struct instance_rank {
	struct instance_event *events; /* in any order */
	size_t cnt;
	int64_t offset_ns; /* to add to the rank's times, for one clock of all ranks */
	int64_t spread_ns; /* median absolute deviation of that clock */
};

/*
 * Sets the instance of all events. A collective that one rank alone has gets 0, and so does a
 * number that a rank has twice. *ret_cnt: how many instances, numbered from 1. Returns 0 or
 * -ENOMEM. O(events * log(events) + instances * ranks).
 */
_must_check_ int instances_find(const struct instance_rank *ranks, size_t cnt, uint32_t *ret_cnt);
