/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/latespans.h"

static void see_start(struct late_instance *instance, size_t rank, int64_t start_ns)
{
	if (instance->member_cnt++ == 0 || start_ns > instance->last_ns) {
		instance->before_last_ns =
			instance->member_cnt == 1 ? INT64_MIN : instance->last_ns;
		instance->last_ns = start_ns;
		instance->last_rank = rank;
	} else if (start_ns > instance->before_last_ns) {
		instance->before_last_ns = start_ns;
	}
}

void latespans_find(const struct align_rank *ranks, const struct align_clock *clocks, size_t cnt,
		    uint32_t instance_cnt, struct late_instance *ret)
{
	for (uint32_t i = 0; i <= instance_cnt; i++)
		ret[i] = (struct late_instance){ 0 };
	for (size_t r = 0; r < cnt; r++) {
		for (size_t i = 0; i < ranks[r].cnt; i++) {
			const struct instance_event *e = &ranks[r].events[i];

			if (e->instance > 0 && e->instance <= instance_cnt)
				see_start(&ret[e->instance], r, e->start_ns + clocks[r].offset_ns);
		}
	}
}
