/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that multiply and launch at once, while counting is switched on and off and the pool of
 * events runs dry: nothing is counted twice or timed wrongly. Linked in, so that sanitizers see it.
 */
#include "agent/calls/gpucalls.h"
#include "agent/calls/gputimer.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "cublas_double.h"
#include "gpu_double.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define THREADS 4
#define CALLS 20000
#define PATIENCE 2000 /* looks, 5 ms apart */
#define TIMERS 256

static struct flight *flight;
static char context;
static _Atomic bool go;

static uint64_t last_calls(void)
{
	uint64_t most = 0;

	for (size_t lane = 0; lane < FLIGHT_LANE_CNT; lane++) {
		uint64_t head = atomic_load(&flight->lanes[lane].head);

		for (uint64_t at = head - MIN(head, (uint64_t)FLIGHT_LANE_RECORD_CNT); at < head;
		     at++) {
			struct ring_record record;

			if (ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at, &record) &&
			    record.kind == FLIGHT_CALLS && record.detail == FLIGHT_CALLS_MATMUL)
				most = MAX(most, (uint64_t)record.value);
		}
	}
	return most;
}

static void await_calls(uint64_t cnt)
{
	for (int i = 0; i < PATIENCE && last_calls() != cnt; i++)
		(void)usleep(5000);
	assert_int_equal(last_calls(), cnt);
}

static int multiply_once(int batch, void *queue)
{
	struct double_layout matrix = { 2, 256, 256, batch };
	int transposed = 0;

	return cublasLtMatmul(NULL, &transposed, NULL, NULL, &matrix, NULL, &matrix, NULL, NULL,
			      &matrix, NULL, &matrix, NULL, NULL, 0, queue);
}

/* Each on a queue of its own, whose clock moves by its own work alone. */
static void *multiply(void *arg)
{
	int number = *(int *)arg;
	void *queue = (void *)(uintptr_t)(10 + number);

	double_gpu_context(&context);
	while (!atomic_load(&go))
		(void)usleep(100);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(multiply_once(100 + number, queue), 0);
	return NULL;
}

static void run_threads(void (*meanwhile)(void))
{
	pthread_t threads[THREADS];
	int numbers[THREADS];

	atomic_store(&go, false);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, multiply, &numbers[i]), 0);
	}
	atomic_store(&go, true);
	if (meanwhile != NULL)
		meanwhile();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void check_times(void)
{
	uint32_t timed = 0;

	for (size_t lane = 0; lane < FLIGHT_LANE_CNT; lane++) {
		uint64_t head = atomic_load(&flight->lanes[lane].head);

		for (uint64_t at = head - MIN(head, (uint64_t)FLIGHT_LANE_RECORD_CNT);
		     at + 1 < head; at++) {
			struct ring_record time, shape = { 0 };

			if (!ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at, &time) ||
			    time.kind != FLIGHT_TIMED)
				continue;
			assert_true(ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at + 1,
					      &shape));
			assert_int_equal(shape.kind, FLIGHT_TIMED_SHAPE);
			assert_int_equal(time.value,
					 DOUBLE_GEMM_NS(256, 256, 256, (uint32_t)shape.extra));
			timed++;
		}
	}
	assert_true(timed > 0);
}

static void start(void)
{
	struct double_layout none = { 0 };

	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(flight != MAP_FAILED && nametable_open(flight) == 0);
	lane_attach(flight);
	assert_int_equal(setenv(PT_ENV_GPU_TIMES, "1", 1), 0);
	/* The linker leaves out a library of which nothing else is asked for. */
	assert_int_equal(cublasLtMatrixLayoutGetAttribute(&none, 99, NULL, 0, NULL), 7);
	gpucalls_open();
	gpucalls_watch(true);
}

static void every_call_counts_once_and_has_its_own_time(_unused_ void **state)
{
	uint64_t before = 0;

	start();
	double_gpu_context(&context);
	for (; double_gpu_count("created") < (int64_t)2 * TIMERS; before++) {
		assert_int_equal(multiply_once(1, NULL), 0);
		assert_true(before < PATIENCE * 5);
		(void)usleep(1000);
	}
	(void)usleep(50000);
	run_threads(NULL);
	await_calls(before + (uint64_t)THREADS * CALLS);
	check_times();
}

static void hold_now_and_then(void)
{
	for (int i = 0; i < 20; i++) {
		double_gpu_hold(i % 2 == 0);
		(void)usleep(2000);
	}
	double_gpu_hold(false);
}

static void a_pool_that_runs_dry_mixes_nothing_up(_unused_ void **state)
{
	uint64_t before = last_calls();

	run_threads(hold_now_and_then);
	await_calls(before + (uint64_t)THREADS * CALLS);
	check_times();
}

/* The newest sum of what was computed, in 10^6 operations. */
static uint64_t last_mflop(void)
{
	uint64_t most = 0;

	for (size_t lane = 0; lane < FLIGHT_LANE_CNT; lane++) {
		uint64_t head = atomic_load(&flight->lanes[lane].head);
		struct ring_record record;

		for (uint64_t at = head - MIN(head, (uint64_t)FLIGHT_LANE_RECORD_CNT); at < head;
		     at++) {
			if (ring_copy(flight->records[lane], FLIGHT_LANE_RECORD_CNT, at, &record) &&
			    record.kind == FLIGHT_CALLS && record.detail == FLIGHT_CALLS_MATMUL)
				most = MAX(most, record.extra);
		}
	}
	return most;
}

#define SHAPES 3000

/* More shapes than there are places for: each call counts, and its work. */
static void shapes_without_number_are_counted_all_the_same(_unused_ void **state)
{
	uint64_t calls = last_calls(), mflop = last_mflop();
	double more = 0;

	for (int i = 0; i < 2 * SHAPES; i++) {
		assert_int_equal(multiply_once(1000 + i % SHAPES, NULL), 0);
		more += 2e-6 * 256 * 256 * 256 * (1000 + i % SHAPES);
	}
	await_calls(calls + (uint64_t)2 * SHAPES);
	assert_true((double)(last_mflop() - mflop) > more - 2);
	assert_true((double)(last_mflop() - mflop) < more + 2);
}

static void switch_now_and_then(void)
{
	for (int i = 0; i < 50; i++) {
		gpucalls_watch(i % 2 != 0);
		(void)usleep(500);
	}
	gpucalls_watch(true);
}

static void switching_is_safe_at_any_time(_unused_ void **state)
{
	uint64_t before = last_calls(), now;

	run_threads(switch_now_and_then);
	(void)usleep(1200000); /* the next sum */
	now = last_calls();
	assert_true(now >= before && now <= before + (uint64_t)THREADS * CALLS);
	check_times();
	assert_string_equal(double_gpu_fault(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_counts_once_and_has_its_own_time),
		cmocka_unit_test(a_pool_that_runs_dry_mixes_nothing_up),
		cmocka_unit_test(shapes_without_number_are_counted_all_the_same),
		cmocka_unit_test(switching_is_safe_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
