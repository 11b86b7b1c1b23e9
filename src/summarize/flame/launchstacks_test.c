/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/flame/launchstacks.h"

#include "base/splitmix.h"
#include "base/test_alloc.h"
#include "summarize/test_trace.h"

#include <errno.h>

static struct trace trace;
static struct flametree tree;
static struct launchstacks found;

static void start(void)
{
	trace_start(&trace);
	assert_int_equal(flametree_init(&tree), 0);
}

static void finish(void)
{
	flametree_done(&tree);
	trace_done(&trace);
}

static void weigh(enum launch_weight weight)
{
	assert_int_equal(launchstacks_add(&trace, weight, 0, &tree, &found), 0);
	assert_int_equal(flametree_finish(&tree), 0);
}

/* "main thread;train;aten::mm" as the total weight of that node; -1: there is none. */
static double total_of(const char *path)
{
	for (uint32_t i = 0; i < tree.nodes.cnt; i++) {
		char text[512] = "";

		for (uint32_t up = i; up != FLAMETREE_ROOT; up = tree.nodes.data[up].parent) {
			char longer[512];

			(void)snprintf(longer, sizeof(longer), "%.200s%s%.200s",
				       flametree_text(&tree, up), text[0] != '\0' ? ";" : "", text);
			memcpy(text, longer, sizeof(text));
		}
		if (strcmp(text, path) == 0)
			return tree.nodes.data[i].total;
	}
	return -1;
}

static void launchstacks_puts_a_kernel_below_what_was_open_at_its_launch(void **state)
{
	uint16_t thread, stream;
	uint32_t call, kernel;

	(void)state;
	start();
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	(void)trace_event(&trace, KIND_PYTHON, thread, "train.py(3): train", 0, 100);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::mm", 10, 10);
	call = trace_event(&trace, KIND_RUNTIME, thread, "cudaLaunchKernel", 12, 3);
	kernel = trace_event(&trace, KIND_KERNEL, stream, "gemm", 50, 400);
	trace.events[kernel].parent = call;
	kernel = trace_event(&trace, KIND_KERNEL, stream, "lost", 500, 7);
	weigh(LAUNCH_DEVICE);
	assert_float_equal(total_of("main thread;train.py(3): train;aten::mm;gemm"), 400, 0);
	assert_float_equal(total_of("launched by a call that the trace lacks;lost"), 7, 0);
	assert_float_equal(found.total_ns, 407, 0);
	assert_int_equal(found.without_launch, 1);
	assert_int_equal(found.without_python, 0);
	finish();
}

static void launchstacks_gives_host_time_to_the_innermost_function(void **state)
{
	uint16_t thread;

	(void)state;
	start();
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(1): f", 0, 100000);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(9): g", 20000, 30000);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::add", 25000, 5000);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(9): g", 60000, 60000);
	trace.events[3].parent = 0; /* sticks out, but is called by f */
	weigh(LAUNCH_HOST);
	assert_float_equal(total_of("main thread;a.py(1): f;a.py(9): g;aten::add"), 5000, 0);
	assert_float_equal(total_of("main thread;a.py(1): f;a.py(9): g"), 90000, 0);
	assert_float_equal(total_of("main thread;a.py(1): f"), 120000, 0);
	finish();
}

static void launchstacks_takes_what_follows_within_rounding_for_no_callee(void **state)
{
	uint16_t thread;

	(void)state;
	start();
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::a", 0, 10000);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::b", 9000, 10000);
	(void)trace_event(&trace, KIND_RUNTIME, thread, "cudaEventQuery", 30000, 50000);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::c", 40000, 10000);
	weigh(LAUNCH_HOST);
	assert_float_equal(total_of("main thread;aten::b"), 10000, 0);
	assert_float_equal(total_of("main thread;aten::c"), 10000, 0);
	finish();
}

static void launchstacks_hangs_frames_of_another_thread_below_their_caller(void **state)
{
	uint16_t thread, other;
	uint32_t caller, hook;

	(void)state;
	start();
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	other = trace_lane(&trace, LANE_THREAD, 1, 2);
	caller = trace_event(&trace, KIND_PYTHON, thread, "a.py(1): backward", 0, 100);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(5): x", 1, 1);
	hook = trace_event(&trace, KIND_PYTHON, other, "a.py(7): hook", 10, 20);
	trace.events[hook].parent = caller;
	weigh(LAUNCH_HOST);
	assert_float_equal(total_of("main thread;a.py(1): backward;a.py(7): hook"), 20, 0);
	finish();
}

static void launchstacks_of_waits_has_waits_alone(void **state)
{
	uint16_t thread;

	(void)state;
	start();
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(1): f", 0, 100);
	(void)trace_event(&trace, KIND_RUNTIME, thread, "cudaStreamSynchronize", 20, 30);
	(void)trace_event(&trace, KIND_PYTHON, thread, "<built-in function sleep>", 60, 20);
	weigh(LAUNCH_WAIT);
	assert_float_equal(found.total_ns, 50, 0);
	assert_float_equal(total_of("main thread;a.py(1): f"), 50, 0);
	finish();
}

static void launchstacks_knows_which_calls_wait(void **state)
{
	(void)state;
	assert_true(launchstacks_waits(KIND_RUNTIME, "cudaDeviceSynchronize"));
	assert_true(launchstacks_waits(KIND_RUNTIME, "hipStreamSynchronize"));
	assert_false(launchstacks_waits(KIND_RUNTIME, "cudaLaunchKernel"));
	assert_false(launchstacks_waits(KIND_OPERATOR, "Synchronize"));
	assert_true(launchstacks_waits(KIND_PYTHON, "<built-in method acquire of _thread.lock "
						    "object>"));
	assert_false(launchstacks_waits(KIND_PYTHON, "sleep.py(3): wait"));
}

/* Random nested and crossing events: what threads had is what the tree has. */
static void launchstacks_loses_no_time(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 100; round++) {
		bool busy[400] = { false };
		size_t sum = 0;
		int64_t at = 0;
		uint16_t thread;

		start();
		thread = trace_lane(&trace, LANE_THREAD, 1, 1);
		for (int i = 0; i < 30; i++) {
			const int64_t dur = 1 + (int64_t)(splitmix_next(&seed) % 40);
			char name[2] = { (char)('a' + splitmix_next(&seed) % 4), '\0' };

			(void)trace_event(&trace, KIND_OPERATOR, thread, name, at, dur);
			for (int64_t t = at; t < at + dur; t++)
				busy[t] = true;
			at += 1 + (int64_t)(splitmix_next(&seed) % 9);
		}
		for (size_t t = 0; t < ARRAY_SIZE(busy); t++)
			sum += busy[t];
		weigh(LAUNCH_HOST);
		assert_true(found.total_ns >= (double)sum);
		assert_float_equal(tree.nodes.data[FLAMETREE_ROOT].total, found.total_ns, 0);
		finish();
	}
}

static void launchstacks_survives_each_failed_allocation(void **state)
{
	uint16_t thread;
	int error = -ENOMEM;

	(void)state;
	trace_start(&trace);
	thread = trace_lane(&trace, LANE_THREAD, 1, 1);
	(void)trace_event(&trace, KIND_PYTHON, thread, "a.py(1): f", 0, 100);
	(void)trace_event(&trace, KIND_OPERATOR, thread, "aten::add", 25, 5);
	for (int n = 0; error == -ENOMEM; n++) {
		assert_int_equal(flametree_init(&tree), 0);
		allocations_left = n;
		error = launchstacks_add(&trace, LAUNCH_HOST, 0, &tree, &found);
		allocations_left = -1;
		flametree_done(&tree);
	}
	assert_int_equal(error, 0);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchstacks_puts_a_kernel_below_what_was_open_at_its_launch),
		cmocka_unit_test(launchstacks_gives_host_time_to_the_innermost_function),
		cmocka_unit_test(launchstacks_takes_what_follows_within_rounding_for_no_callee),
		cmocka_unit_test(launchstacks_hangs_frames_of_another_thread_below_their_caller),
		cmocka_unit_test(launchstacks_of_waits_has_waits_alone),
		cmocka_unit_test(launchstacks_knows_which_calls_wait),
		cmocka_unit_test(launchstacks_loses_no_time),
		cmocka_unit_test(launchstacks_survives_each_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
