/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of threads that are there, and of one that is to come; all of them taken. */
#include "agent/core/lane.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct flight *flight;

static int setup(_unused_ void **state)
{
	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	lane_attach(flight);
	return flight == MAP_FAILED ? -1 : 0;
}

static int teardown(_unused_ void **state)
{
	lane_attach(NULL);
	return munmap(flight, sizeof(*flight));
}

static void run(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* *arg: whether it has a lane before and after its first record. */
static void *record_one(void *arg)
{
	bool *taken = arg;

	taken[0] = lane_is_taken();
	lane_record(&(struct ring_record){ .kind = 1 });
	taken[1] = lane_is_taken();
	return NULL;
}

static void *adopt_and_record(void *arg)
{
	const uint32_t *lane = arg;

	lane_adopt(*lane);
	lane_record(&(struct ring_record){ .kind = 2 });
	return NULL;
}

static void a_thread_takes_a_lane_with_its_first_record(_unused_ void **state)
{
	bool taken[2];

	for (uint32_t i = 0; i < FLIGHT_LANE_CNT; i++) {
		run(record_one, taken);
		assert_true(!taken[0] && taken[1]);
		assert_int_equal(flight->lane_cnt, i + 1);
		assert_true(flight->lanes[i].tid != 0);
		assert_int_equal(flight->lanes[i].head, 1);
	}
	run(record_one, taken);
	assert_true(!taken[0] && !taken[1]);
	assert_int_equal(flight->drops.lanes, 1);
	assert_int_equal(lane_reserve(), 0);
	assert_int_equal(flight->lane_cnt, FLIGHT_LANE_CNT);
}

static void a_lane_that_is_reserved_outlasts_a_rush(_unused_ void **state)
{
	uint32_t lane = lane_reserve();
	bool taken[2];

	assert_int_equal(lane, 1);
	for (uint32_t i = 0; i < 2 * FLIGHT_LANE_CNT; i++)
		run(record_one, taken);
	assert_int_equal(flight->drops.lanes, FLIGHT_LANE_CNT + 1);
	assert_int_equal(flight->lanes[0].head, 0);
	run(adopt_and_record, &lane);
	assert_int_equal(flight->lanes[0].head, 1);
	assert_true(flight->lanes[0].tid != 0);
	assert_int_equal(flight->drops.lanes, FLIGHT_LANE_CNT + 1);
}

static void *share_two(void *arg)
{
	bool *written = arg;
	struct ring_record records[] = { { .kind = 3 }, { .kind = 4 } };

	*written = lane_record_shared(records, 2) && !lane_is_taken();
	return NULL;
}

static void threads_that_come_and_go_share_a_lane(_unused_ void **state)
{
	bool written;

	for (uint32_t i = 0; i < 10 * FLIGHT_LANE_CNT; i++) {
		run(share_two, &written);
		assert_true(written);
	}
	assert_int_equal(flight->lane_cnt, 1);
	assert_int_equal(flight->lanes[0].head, 20 * FLIGHT_LANE_CNT);
	assert_true(flight->lanes[0].tid != 0);
}

#define SHARERS 6
#define PAIRS 5000

static void *share_pairs(void *arg)
{
	uint32_t *refused = arg;

	for (int i = 0; i < PAIRS; i++) {
		struct ring_record records[] = { { .kind = 3, .value = i },
						 { .kind = 4, .value = i } };

		*refused += !lane_record_shared(records, 2);
	}
	return NULL;
}

/* The records of one call stay adjacent while other threads write. */
static void a_shared_lane_has_one_writer_at_a_time(_unused_ void **state)
{
	uint32_t refused[SHARERS] = { 0 };
	pthread_t threads[SHARERS];
	uint64_t cnt = 0;

	for (size_t i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, share_pairs, &refused[i]), 0);
	for (size_t i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < SHARERS; i++)
		cnt += 2 * (PAIRS - refused[i]);
	for (uint32_t lane = 0; lane < flight->lane_cnt; lane++) {
		struct ring_record first, second;
		uint64_t head = flight->lanes[lane].head;

		cnt -= head;
		for (uint64_t at = head - MIN(head, (uint64_t)FLIGHT_LANE_RECORD_CNT); at < head;
		     at += 2) {
			assert_true(ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at,
					      &first));
			assert_true(ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at + 1,
					      &second));
			assert_int_equal(first.kind, 3);
			assert_int_equal(second.kind, 4);
			assert_int_equal(first.value, second.value);
		}
	}
	assert_int_equal(cnt, 0);
}

static void no_lane_is_left_to_be_shared(_unused_ void **state)
{
	bool written = true;

	for (uint32_t i = 0; i < FLIGHT_LANE_CNT; i++)
		(void)lane_reserve();
	run(share_two, &written);
	assert_false(written);
}

/* The one record of a window just opened, after a moment in which its ring could be freed. */
static bool has_first_record(uint64_t at)
{
	struct ring_record record;

	lane_record_window(&(struct ring_record){ .kind = 5, .value = (int64_t)at });
	for (int i = 0; i < 4; i++)
		(void)sched_yield();
	return ring_copy(flight->window_records[0], FLIGHT_WINDOW_RECORD_CNT, at, &record) &&
	       record.value == (int64_t)at;
}

#define WINDOWS 100

static _Atomic bool freed_enough;

static void *free_for_ever(_unused_ void *arg)
{
	while (!atomic_load(&freed_enough))
		(void)lane_free_window();
	return NULL;
}

/* The first lane belongs to this thread; earlier tests do not matter. */
static void *open_windows(void *arg)
{
	uint64_t *kept = arg;

	for (uint64_t i = 0; i < WINDOWS; i++) {
		lane_open_window(7);
		*kept += has_first_record(i);
		lane_close_window();
	}
	return NULL;
}

static void a_window_that_is_opened_keeps_its_first_records(_unused_ void **state)
{
	pthread_t freer;
	uint64_t kept = 0;

	atomic_store(&freed_enough, false);
	assert_int_equal(pthread_create(&freer, NULL, free_for_ever, NULL), 0);
	run(open_windows, &kept);
	atomic_store(&freed_enough, true);
	assert_int_equal(pthread_join(freer, NULL), 0);
	assert_int_equal(kept, WINDOWS);
}

static void an_open_window_is_not_freed(_unused_ void **state)
{
	lane_open_window(7);
	assert_false(lane_free_window());
	lane_close_window();
	assert_true(lane_free_window());
}

static void without_a_recorder_there_is_no_lane(_unused_ void **state)
{
	lane_attach(NULL);
	assert_int_equal(lane_reserve(), 0);
	lane_adopt(1);
	assert_false(lane_is_taken());
	assert_false(lane_record_shared(&(struct ring_record){ .kind = 1 }, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_takes_a_lane_with_its_first_record, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_lane_that_is_reserved_outlasts_a_rush, setup,
						teardown),
		cmocka_unit_test_setup_teardown(threads_that_come_and_go_share_a_lane, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_shared_lane_has_one_writer_at_a_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_lane_is_left_to_be_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(a_window_that_is_opened_keeps_its_first_records,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_open_window_is_not_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_recorder_there_is_no_lane, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
