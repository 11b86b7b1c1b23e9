/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who made others wait: of each collective the member that came last, and since when all
 * others were there. For the timeline's files alone.
 */
#pragma once

#include "report/timeline/clocks.h"

/* A collective of several ranks, on the clock of the reference. */
struct late_instance {
	int64_t before_last_ns, last_ns; /* starts of the last two members */
	size_t last_rank;		 /* index in ranks */
	uint32_t member_cnt;
};

/* Fills ret[instance_cnt + 1], by instance; those of align_match(). O(events). */
void latespans_find(const struct align_rank *ranks, const struct align_clock *clocks, size_t cnt,
		    uint32_t instance_cnt, struct late_instance *ret);
