/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agent/nccl.h"

#include "collect/agent/lane.h"
#include "collect/agent/names.h"
#include "collect/nccl/core.h"

static void count_drop(void)
{
	struct flight *flight = lane_flight();

	if (flight != NULL)
		atomic_fetch_add_explicit(&flight->drops.nccl, 1, memory_order_relaxed);
}

/* The table of names is there as long as a recorder was. */
static uint32_t string_id(const char *text, size_t len)
{
	return lane_flight() != NULL ? names_string(text, len) : 0;
}

void nccl_watch(enum nccl_level level)
{
	static const struct nccl_sink sink = { .record = lane_record,
					       .string = string_id,
					       .drop = count_drop,
					       .has_lane = lane_is_taken };

	nccl_set_sink(&sink);
	nccl_set_level(level);
}
