/* SPDX-License-Identifier: Apache-2.0 */
/* The helper thread and its lane, with a back end that is played. */
#include "agent/gpu/gpu.h"

#include "agent/core/collectors.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BACKLOG 3000u

static struct flight *flight;

static struct {
	const struct gputrace_sink *sink;
	size_t left;		   /* events to be drained */
	uint32_t queue, queue_cnt; /* where they are, in turn */
	int close_result;
	_Atomic bool stuck, stopping; /* stop() waits while stuck */
	_Atomic int closed, notes, remarks;
	_Atomic bool hears_signals; /* the thread that stops it */
} back_end;

/* --- what the helper needs --- */

uint32_t nametable_string(_unused_ const char *text, _unused_ size_t len)
{
	return 1;
}

void collectors_note(_unused_ enum flight_source source, _unused_ const char *why)
{
	back_end.notes++;
}

void collectors_remark(_unused_ enum flight_source source, _unused_ const char *what)
{
	back_end.remarks++;
}

static int probe(_unused_ char ret_why[static GPUTRACE_WHY_MAX])
{
	return 0;
}

static int start(const struct gputrace_sink *sink, _unused_ char ret_why[static GPUTRACE_WHY_MAX])
{
	back_end.sink = sink;
	return 0;
}

static size_t drain(size_t most)
{
	struct gputrace_event event = { .kind = GPUTRACE_KERNEL, .name = 1 };
	size_t cnt = MIN(most, back_end.left);

	for (size_t i = 0; i < cnt; i++, back_end.left--) {
		event.id = back_end.queue + (uint32_t)back_end.left % MAX(back_end.queue_cnt, 1u);
		event.correlation = event.id;
		back_end.sink->event(&event);
	}
	return cnt;
}

static bool hears_signals(void)
{
	sigset_t blocked;

	return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 ||
	       sigismember(&blocked, SIGTERM) == 0 || sigismember(&blocked, SIGCHLD) == 0;
}

static void stop(void)
{
	back_end.hears_signals = hears_signals();
	back_end.left = BACKLOG;
	back_end.stopping = true;
	while (back_end.stuck)
		(void)sched_yield();
}

static int close_session(_unused_ char ret_why[static GPUTRACE_WHY_MAX])
{
	back_end.closed++;
	return back_end.close_result;
}

static void forked(void)
{
}

static const struct gputrace_ops ops = {
	"played", probe, start, drain, stop, close_session, forked
};
const struct gputrace_ops *const gputrace_all[] = { &ops, NULL };

void gputrace_why(char ret_why[static GPUTRACE_WHY_MAX], const char *part, ...)
{
	memcpy(ret_why, part, MIN(strlen(part) + 1, (size_t)GPUTRACE_WHY_MAX));
}

/* --- windows --- */

static char why[GPUTRACE_WHY_MAX];

static void begin_and_end(int close_result, bool stuck)
{
	back_end.close_result = close_result;
	back_end.stuck = stuck;
	back_end.stopping = false;
	back_end.closed = back_end.notes = back_end.remarks = 0;
	assert_int_equal(gpu_open(why), 0);
	gpu_abandon(); /* does not concern an open window */
	gpu_close();
}

static void wait_closed(void)
{
	while (!gpu_is_closed())
		(void)sched_yield();
}

static uint64_t recorded(void)
{
	return atomic_load(&flight->lanes[0].window_head);
}

/* The first test: the helper's lane is taken once. */
static void without_a_lane_no_window_opens(_unused_ void **state)
{
	flight->lane_cnt = FLIGHT_LANE_CNT;
	assert_int_equal(gpu_open(why), -ENOSPC);
	assert_non_null(strstr(why, "lane"));
	assert_true(gpu_is_closed());
	flight->lane_cnt = 0;
}

static void a_window_is_drained_and_then_closed(_unused_ void **state)
{
	uint64_t before = recorded();

	begin_and_end(0, false);
	wait_closed();
	assert_int_equal(recorded() - before, BACKLOG);
	assert_int_equal(back_end.closed, 1);
	assert_int_equal(back_end.notes + back_end.remarks, 0);
	assert_int_equal(flight->drops.lanes, 0);
}

static void signals_are_for_threads_of_the_job(_unused_ void **state)
{
	back_end.hears_signals = true;
	begin_and_end(0, false);
	wait_closed();
	assert_false(back_end.hears_signals);
	assert_true(hears_signals());
}

static void an_incomplete_window_differs_from_one_that_stays_attached(_unused_ void **state)
{
	begin_and_end(-ETIMEDOUT, false);
	wait_closed();
	assert_true(back_end.remarks == 1 && back_end.notes == 0);
	begin_and_end(-EIO, false);
	wait_closed();
	assert_true(back_end.remarks == 0 && back_end.notes == 1);
}

static void an_abandoned_back_end_is_not_detached_late(_unused_ void **state)
{
	uint64_t before = recorded();

	begin_and_end(0, true);
	while (!back_end.stopping)
		(void)sched_yield();
	assert_false(gpu_is_closed());
	gpu_abandon();
	back_end.stuck = false;
	wait_closed();
	assert_int_equal(back_end.closed, 0);
	assert_true(back_end.remarks == 1 && back_end.notes == 0);
	assert_int_equal(recorded() - before, BACKLOG);
	begin_and_end(0, false); /* the next is as all others */
	wait_closed();
	assert_int_equal(back_end.closed, 1);
}

/* All of a window, each on the lane that is its queue's now. */
static void check_queues(uint64_t first)
{
	for (uint64_t i = first; i < recorded(); i++) {
		const struct ring_record *at =
			&flight->window_records[0][i % FLIGHT_WINDOW_RECORD_CNT];
		const struct flight_gpu_lane *lane = &flight->gpu_lanes[at->detail];

		assert_in_range(at->detail, 0, atomic_load(&flight->gpu_lane_cnt) - 1);
		assert_int_equal(lane->id, flight_gpu_correlation(at->extra));
		assert_int_equal(lane->device, 0);
	}
}

static void queues_of_earlier_windows_make_room_for_others(_unused_ void **state)
{
	back_end.queue_cnt = 300;
	for (uint32_t i = 0; i < 12; i++) {
		uint64_t before = recorded();

		back_end.queue = 1000 + 150 * i; /* half of them are those of the window before */
		begin_and_end(0, false);
		wait_closed();
		assert_int_equal(recorded() - before, BACKLOG);
		check_queues(before);
	}
	assert_int_equal(flight->drops.gpu, 0);
	assert_int_equal(flight->gpu_lane_cnt, FLIGHT_GPU_LANE_CNT);
}

static void queues_beyond_the_table_are_counted(_unused_ void **state)
{
	uint64_t before = recorded();

	back_end.queue = 5000;
	back_end.queue_cnt = BACKLOG;
	begin_and_end(0, false);
	wait_closed();
	assert_int_equal(recorded() - before, FLIGHT_GPU_LANE_CNT);
	assert_int_equal(flight->drops.gpu, BACKLOG - FLIGHT_GPU_LANE_CNT);
	check_queues(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_lane_no_window_opens),
		cmocka_unit_test(a_window_is_drained_and_then_closed),
		cmocka_unit_test(signals_are_for_threads_of_the_job),
		cmocka_unit_test(an_incomplete_window_differs_from_one_that_stays_attached),
		cmocka_unit_test(an_abandoned_back_end_is_not_detached_late),
		cmocka_unit_test(queues_of_earlier_windows_make_room_for_others),
		cmocka_unit_test(queues_beyond_the_table_are_counted),
	};

	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (flight == MAP_FAILED)
		return 1;
	lane_attach(flight);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
