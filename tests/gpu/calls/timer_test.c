/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of timers by itself: calls that return after their timer was given to another. */
#include "agent/calls/gputimer.h"
#include "agent/core/lane.h"
#include "gpu_double.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define OLD_QUEUE ((void *)(uintptr_t)16)
#define NEW_QUEUE ((void *)(uintptr_t)32)
#define LATER_NS (INT64_MAX / 2)

static struct ring_record reported;
static int told_cnt;
static char context;

/* Replace the recorder. */
struct flight *lane_flight(void)
{
	return NULL;
}

void lane_record(const struct ring_record *record)
{
	reported = *record;
	told_cnt++;
}

/* The driver is found, a thread says which GPU, events are made. */
static int setup(_unused_ void **state)
{
	double_gpu_context(&context);
	gputimer_watch(true);
	for (int64_t pause_ns = 1000000000; pause_ns < 60000000000; pause_ns *= 2)
		assert_int_equal(gputimer_work(0), pause_ns); /* no timer in use */
	assert_int_equal(gputimer_begin(OLD_QUEUE), 0);
	(void)gputimer_work(0);
	assert_int_equal(gputimer_begin(OLD_QUEUE), 0);
	assert_int_equal(double_gpu_count("created"), 0);
	(void)gputimer_work(0);
	assert_int_equal(double_gpu_count("created"), 2 * GPUTIMER_CNT);
	return 0;
}

static gputimer begin_in_slot_of(gputimer old)
{
	for (uint32_t i = 0; i < 2 * GPUTIMER_CNT; i++) {
		gputimer timer = gputimer_begin(NEW_QUEUE);

		if ((timer & 0xffff) == (old & 0xffff))
			return timer;
		gputimer_end(timer);
		gputimer_claim(timer, NULL, 0);
		(void)gputimer_work(0);
	}
	return 0;
}

static void a_call_that_returns_too_late_leaves_its_slot_to_the_next(_unused_ void **state)
{
	const struct ring_record record = { .kind = 1 };
	gputimer old = gputimer_begin(OLD_QUEUE), next;
	int64_t records;

	assert_true(old != 0);
	(void)gputimer_work(LATER_NS); /* it is taken back */
	next = begin_in_slot_of(old);
	assert_true(next != 0 && next != old);
	double_gpu_work(NEW_QUEUE, 1000000);
	gputimer_end(next);
	gputimer_claim(next, &record, 1);
	double_gpu_work(OLD_QUEUE, 50000000);
	records = double_gpu_count("records");
	gputimer_end(old);
	gputimer_claim(old, &record, 1);
	assert_int_equal(double_gpu_count("records"), records);
	(void)gputimer_work(0);
	assert_int_equal(told_cnt, 1);
	assert_int_equal(reported.value, 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_returns_too_late_leaves_its_slot_to_the_next),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
