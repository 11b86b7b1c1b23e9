/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/iterations/lag.h"

#include "base/test_alloc.h"
#include "summarize/test_window.h"

#include <errno.h>

static uint16_t thread, stream;

static void add_step(int number, int64_t start_ns, int64_t dur_ns)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "ProfilerStep#%d", number);
	trace_event(&trace, KIND_ANNOTATION, thread, name, start_ns, dur_ns);
}

static void add_kernel(int64_t launch_ns, int64_t start_ns, int64_t dur_ns)
{
	uint32_t call = trace_event(&trace, KIND_RUNTIME, thread, "cudaLaunchKernel", launch_ns, 1);
	uint32_t kernel = trace_event(&trace, KIND_KERNEL, stream, "gemm", start_ns, dur_ns);

	trace.events[kernel].parent = call;
}

static void start(void)
{
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	stream = trace_lane(&trace, LANE_STREAM, 0, 7);
}

/* Three iterations of 100 that are launched in 10 each; the last mark is 170 before the end. */
static void an_iteration_ends_with_the_work_that_it_launched(void **state)
{
	struct window w;

	(void)state;
	start();
	for (int i = 0; i < 3; i++) {
		add_step(i, 10 * i, 10);
		add_kernel(10 * i + 2, 5 + 100 * i, 95);
	}
	w = found(NULL);
	assert_int_equal(w.iterations.cnt, 3);
	assert_int_equal(w.start_ns, 0);
	assert_int_equal(w.end_ns, 300);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(w.iterations.data[i].start_ns, 100 * i);
		assert_int_equal(w.iterations.data[i].dur_ns, 100);
	}
	window_done(&w);
}

static void work_from_before_the_window_is_left_out(void **state)
{
	struct window w;

	(void)state;
	start();
	add_kernel(-5, -4, 64);
	for (int i = 0; i < 2; i++) {
		add_step(i, 10 * i, 10);
		add_kernel(10 * i + 2, 60 + 100 * i, 100);
	}
	w = found(NULL);
	assert_int_equal(w.start_ns, 60);
	assert_int_equal(w.end_ns, 260);
	assert_int_equal(w.iterations.data[1].start_ns, 100);
	window_done(&w);
}

/* The last kernels of an iteration end after its mark in any job; loading stays where it is. */
static void marks_that_the_device_follows_are_kept(void **state)
{
	struct window w;

	(void)state;
	start();
	for (int i = 0; i < 3; i++) {
		add_step(i, 100 * i, 100);
		add_kernel(100 * i + 50, 100 * i + 60, 60);
	}
	w = found(NULL);
	assert_int_equal(w.start_ns, 0);
	assert_int_equal(w.end_ns, 300);
	assert_int_equal(w.iterations.data[2].dur_ns, 100);
	window_done(&w);
}

/* A kernel of before the window runs on behind all of it: then the marks are all there is. */
static void a_window_is_never_empty(void **state)
{
	struct window w;

	(void)state;
	start();
	add_kernel(-5, -4, 500);
	for (int i = 0; i < 2; i++) {
		add_step(i, 10 * i, 10);
		add_kernel(10 * i + 2, 60 + 100 * i, 100);
	}
	w = found(NULL);
	assert_int_equal(w.start_ns, 0);
	assert_int_equal(w.end_ns, 20);
	window_done(&w);
}

static void without_memory_it_fails(void **state)
{
	struct window w = { 0 };

	(void)state;
	start();
	allocations_left = 0;
	assert_int_equal(lag_settle(&trace, &w), -ENOMEM);
	allocations_left = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_iteration_ends_with_the_work_that_it_launched),
		TEST(work_from_before_the_window_is_left_out),
		TEST(marks_that_the_device_follows_are_kept),
		TEST(a_window_is_never_empty),
		TEST(without_memory_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
