/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/nccl.h"

#include "agent/calls/gpucalls.h"
#include "agent/calls/gputimer.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/nccl/events.h"

static void count_drop(void)
{
	struct flight *flight = lane_flight();

	if (flight != NULL)
		atomic_fetch_add_explicit(&flight->drops.nccl, 1, memory_order_relaxed);
}

/*
 * Threads that queue calls get a lane of their own, as most of them train; but only so many, since
 * lanes are taken for good and some of these threads live for a moment.
 */
#define CALL_THREAD_MAX 8u

static bool may_take_lane(void)
{
	static __thread bool asked __attribute__((tls_model("initial-exec")));
	static _Atomic uint32_t cnt;

	if (asked || atomic_load_explicit(&cnt, memory_order_relaxed) >= CALL_THREAD_MAX)
		return false;
	asked = true;
	return atomic_fetch_add_explicit(&cnt, 1, memory_order_relaxed) < CALL_THREAD_MAX;
}

/* NCCL's own threads, which come and go with communicators, share lanes. */
static bool write_records(const struct ring_record *records, size_t cnt)
{
	bool call = records[0].kind == FLIGHT_COLLECTIVE;

	if (!lane_is_taken() && !(call && may_take_lane()))
		return lane_record_shared(records, cnt);
	for (size_t i = 0; i < cnt; i++)
		lane_record(&records[i]);
	return true;
}

/* The name table stays valid once there was a recorder. */
static uint32_t string_id(const char *text, size_t len)
{
	return lane_flight() != NULL ? nametable_string(text, len) : 0;
}

/* The sink is the same each time: gpucalls_open() runs before the level is raised. */
void nccl_watch(enum nccl_level level)
{
	static const struct nccl_timing timing = { .begin = gputimer_begin,
						   .end = gputimer_end,
						   .claim = gputimer_claim };
	static const struct nccl_sink timed = {
		.write = write_records, .string = string_id, .drop = count_drop, .timing = &timing
	};
	static const struct nccl_sink plain = { .write = write_records,
						.string = string_id,
						.drop = count_drop };

	nccl_set_sink(gpucalls_are_wanted() ? &timed : &plain);
	nccl_set_level(level);
}
