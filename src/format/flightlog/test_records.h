/* SPDX-License-Identifier: Apache-2.0 */
/* Adds records to the rings of a test's recorder, one call each. */
#pragma once

#include "format/flightlog/test_flight.h"

_unused_ static void recorder_mark(struct flight *f, enum mark mark, int64_t time_ns, int64_t value)
{
	struct ring_record record = { .time_ns = time_ns, .value = value, .kind = (uint16_t)mark };

	ring_push(f->block.ring, MARK_RING_CNT, &f->block.head, &record);
}

_unused_ static void recorder_sample(struct flight *f, uint32_t tid, int64_t time_ns, uint32_t node,
				     uint32_t detail)
{
	struct ring_record record = { .time_ns = time_ns,
				      .value = -1,
				      .kind = FLIGHT_SAMPLE,
				      .detail = (uint16_t)detail,
				      .extra = (uint64_t)tid << 32 | node };

	ring_push(f->samples, FLIGHT_SAMPLE_CNT, &f->sample_head, &record);
}

/* A record of a lane; in_window: into the ring of a window. */
_unused_ static void recorder_push(struct flight *f, uint32_t lane, bool in_window,
				   struct ring_record record)
{
	if (in_window)
		ring_push(f->window_records[lane], FLIGHT_WINDOW_RECORD_CNT,
			  &f->lanes[lane].window_head, &record);
	else
		ring_push(f->records[lane], FLIGHT_LANE_RECORD_CNT, &f->lanes[lane].head, &record);
}

_unused_ static void recorder_operator(struct flight *f, uint32_t lane, const char *name,
				       int64_t start_ns, int64_t end_ns)
{
	recorder_push(f, lane, true,
		      (struct ring_record){ .time_ns = start_ns,
					    .value = end_ns - start_ns,
					    .kind = FLIGHT_OPERATOR,
					    .extra = recorder_string(f, name) });
}
