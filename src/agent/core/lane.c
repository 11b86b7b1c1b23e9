/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/lane.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LANE_NONE (-1)
#define LANE_UNKNOWN 0 /* what a new thread finds: lane numbers are kept plus one */

/* Initial-exec: no allocation at a thread's first access. */
static __thread int my_lane __attribute__((tls_model("initial-exec")));

static struct flight *_Atomic recorder;

#define SHARED_CNT 4u
#define SHARED_TRIES 64u

/* A lane that threads without one share, each for the moment of a record. */
static struct shared {
	_Atomic bool busy;
	uint32_t lane; /* plus one; 0: none yet. Written by the holder of busy */
} shared[SHARED_CNT];

#define FREE_YIELDS 1000u /* on the training thread, until one ring is freed */

/*
 * lane_open_window() sets `opened` and then checks whether a ring is being freed;
 * lane_free_window() sets `freeing` and then checks `opened`: at least one of them sees the other.
 */
static _Atomic bool opened, freeing;

void lane_attach(struct flight *flight)
{
	for (size_t i = 0; i < SHARED_CNT && flight != NULL; i++)
		shared[i].lane = 0;    /* of the recorder before */
	atomic_store(&freeing, false); /* a forked child lacks the thread that set it */
	atomic_store_explicit(&recorder, flight, memory_order_release);
}

struct flight *lane_flight(void)
{
	return atomic_load_explicit(&recorder, memory_order_acquire);
}

/* A lane's number plus one, or LANE_NONE. */
static int add_lane(struct flight *flight)
{
	uint32_t idx = atomic_fetch_add_explicit(&flight->lane_cnt, 1, memory_order_relaxed);

	if (idx < FLIGHT_LANE_CNT)
		return (int)idx + 1;
	atomic_store_explicit(&flight->lane_cnt, FLIGHT_LANE_CNT, memory_order_relaxed);
	return LANE_NONE;
}

/* Writes the lane's thread id and name. */
static void sign_lane(struct flight_lane *lane)
{
	(void)prctl(PR_GET_NAME, lane->name);
	atomic_store_explicit(&lane->tid, (uint32_t)syscall(SYS_gettid), memory_order_release);
}

static int take_lane(struct flight *flight)
{
	int lane = add_lane(flight);

	if (lane != LANE_NONE)
		sign_lane(&flight->lanes[lane - 1]);
	return lane;
}

bool lane_is_taken(void)
{
	return my_lane > LANE_UNKNOWN;
}

uint32_t lane_reserve(void)
{
	struct flight *flight = lane_flight();
	int lane = flight != NULL ? add_lane(flight) : LANE_NONE;

	return lane != LANE_NONE ? (uint32_t)lane : 0;
}

void lane_adopt(uint32_t lane)
{
	struct flight *flight = lane_flight();

	if (flight == NULL || lane == 0 || my_lane != LANE_UNKNOWN)
		return;
	my_lane = (int)lane;
	sign_lane(&flight->lanes[lane - 1]);
}

/* NULL: nothing is recorded, or this thread has no lane. */
static struct flight_lane *own_lane(struct flight *flight, int *ret_idx)
{
	if (my_lane == LANE_UNKNOWN)
		my_lane = take_lane(flight);
	if (my_lane == LANE_NONE) {
		atomic_fetch_add_explicit(&flight->drops.lanes, 1, memory_order_relaxed);
		return NULL;
	}
	*ret_idx = my_lane - 1;
	return &flight->lanes[*ret_idx];
}

void lane_record(const struct ring_record *record)
{
	struct flight *flight = lane_flight();
	struct flight_lane *lane;
	int idx;

	if (flight == NULL)
		return;
	lane = own_lane(flight, &idx);
	if (lane != NULL)
		ring_push(flight->records[idx], FLIGHT_LANE_RECORD_CNT, &lane->head, record);
}

/* False: no lane is left. */
static bool write_shared(struct flight *flight, struct shared *to,
			 const struct ring_record *records, size_t cnt)
{
	struct flight_lane *lane;

	if (to->lane == 0) {
		to->lane = lane_reserve();
		if (to->lane == 0)
			return false;
		sign_lane(&flight->lanes[to->lane - 1]);
	}
	lane = &flight->lanes[to->lane - 1];
	for (size_t i = 0; i < cnt; i++)
		ring_push(flight->records[to->lane - 1], FLIGHT_LANE_RECORD_CNT, &lane->head,
			  &records[i]);
	return true;
}

bool lane_record_shared(const struct ring_record *records, size_t cnt)
{
	struct flight *flight = lane_flight();

	for (uint32_t i = 0; i < SHARED_TRIES && flight != NULL; i++) {
		struct shared *to = &shared[i % SHARED_CNT];
		bool done;

		if (atomic_exchange_explicit(&to->busy, true, memory_order_acquire))
			continue;
		done = write_shared(flight, to, records, cnt);
		atomic_store_explicit(&to->busy, false, memory_order_release);
		if (done)
			return true;
	}
	return false;
}

void lane_record_window(const struct ring_record *record)
{
	if (lane_window_is_open())
		lane_record_late(record);
}

void lane_record_late(const struct ring_record *record)
{
	struct flight *flight = lane_flight();
	struct flight_lane *lane;
	int idx;

	if (flight == NULL)
		return;
	lane = own_lane(flight, &idx);
	if (lane != NULL)
		ring_push(flight->window_records[idx], FLIGHT_WINDOW_RECORD_CNT, &lane->window_head,
			  record);
}

bool lane_window_is_open(void)
{
	struct flight *flight = lane_flight();

	return flight != NULL &&
	       atomic_load_explicit(&flight->window_open, memory_order_relaxed) != 0;
}

void lane_open_window(uint32_t id)
{
	struct flight *flight = lane_flight();

	if (flight == NULL)
		return;
	atomic_store(&opened, true);
	for (uint32_t i = 0; i < FREE_YIELDS && atomic_load(&freeing); i++)
		(void)sched_yield();
	atomic_store_explicit(&flight->window_open, id != 0 ? id : 1, memory_order_release);
}

void lane_close_window(void)
{
	struct flight *flight = lane_flight();

	if (flight != NULL)
		atomic_store_explicit(&flight->window_open, 0, memory_order_release);
	atomic_store(&opened, false);
}

/*
 * The address space stays mapped: a late writer finds zeroed pages. The heads stay too, so that
 * positions never go back.
 */
bool lane_free_window(void)
{
	struct flight *flight = lane_flight();
	bool done = true;

	for (size_t i = 0; i < FLIGHT_LANE_CNT && flight != NULL && done; i++) {
		atomic_store(&freeing, true);
		done = !atomic_load(&opened);
		if (done)
			(void)madvise(flight->window_records[i], sizeof(flight->window_records[i]),
				      MADV_REMOVE);
		atomic_store(&freeing, false);
	}
	return done;
}
