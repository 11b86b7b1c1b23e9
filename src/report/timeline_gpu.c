/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did in windows, and the calls that made them: one track for each queue or thread. */
#include "report/timeline_parts.h"

#include <errno.h>

/* Waits and the tracer's own work lie over what they wait for or disturb: left out. */
static bool is_drawn(const struct ring_record *record, uint32_t gpu_lane)
{
	return (record->kind == FLIGHT_GPU_KERNEL || record->kind == FLIGHT_GPU_MEMOP ||
		record->kind == FLIGHT_GPU_API) &&
	       (record->detail & ~FLIGHT_GPU_NODE) == gpu_lane;
}

static int add_records(const record_vec *records, uint32_t gpu_lane, slice_vec *ret)
{
	vec_foreach(record, records) {
		struct slice slice = { .start_ns = record->time_ns,
				       .end_ns = record->time_ns + record->value,
				       .cpu_ns = -1,
				       .what = flight_gpu_string(record->extra),
				       .kind = SLICE_GPU };

		if (is_drawn(record, gpu_lane) && vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

int timeline_gpu(const struct flightlog *log, uint32_t gpu_lane, slice_vec *ret)
{
	int error = 0;

	vec_foreach(lane, &log->lanes) {
		if (error == 0)
			error = add_records(&lane->window, gpu_lane, ret);
	}
	return error;
}
