/* SPDX-License-Identifier: Apache-2.0 */
#include "format/flightlog/gpulinks.h"

#include "base/test_alloc.h"
#include "base/test_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { STREAM, THREAD };
enum { NO_NAME, KERNEL, LAUNCH, GRAPH_LAUNCH, NCCL_KERNEL }; /* strings */

static int open_log(void **state)
{
	static const char *const strings[] = { "", "gemm", "cudaLaunchKernel", "cudaGraphLaunch",
					       "ncclDevKernel" };
	struct flightlog *log = malloc(sizeof(*log));

	assert_non_null(log);
	flightlog_init(log);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		assert_int_equal(vec_push(&log->strings, strings[i]), 0);
	assert_int_equal(vec_push(&log->gpu_lanes, ((struct flight_gpu_lane){ 0, 7 })), 0);
	assert_int_equal(
		vec_push(&log->gpu_lanes, ((struct flight_gpu_lane){ FLIGHT_GPU_THREAD, 71 })), 0);
	assert_int_equal(vec_push(&log->lanes, ((struct flightlog_lane){ .tid = 71 })), 0);
	*state = log;
	return 0;
}

static int close_log(void **state)
{
	flightlog_done(*state);
	free(*state);
	return 0;
}

static void add(struct flightlog *log, enum flight_kind kind, int64_t time_ns, uint32_t number,
		uint32_t name)
{
	record_vec *to = &log->lanes.data[0].window;
	struct ring_record record = { .time_ns = time_ns,
				      .value = 5,
				      .seq = (uint32_t)to->cnt,
				      .kind = (uint16_t)kind,
				      .detail = kind == FLIGHT_GPU_API ? THREAD : STREAM,
				      .extra = flight_gpu_extra(number, 0, name) };

	assert_int_equal(vec_push(to, record), 0);
}

/* A linear search over all calls: the last with this number that began before, else the first. */
static const struct ring_record *slow_caller(const struct gpulinks *links,
					     const struct ring_record *kernel)
{
	uint32_t number = flight_gpu_correlation(kernel->extra);
	const struct ring_record *found = NULL;

	vec_foreach(at, &links->records) {
		if ((*at)->kind == FLIGHT_GPU_API && number != 0 &&
		    flight_gpu_correlation((*at)->extra) == number &&
		    (found == NULL || (*at)->time_ns <= kernel->time_ns))
			found = *at;
	}
	return found;
}

static void callers_are_those_that_a_search_of_all_finds(void **state)
{
	struct flightlog *log = *state;
	uint64_t random = 1;

	for (int round = 0; round < 50; round++) {
		struct gpulinks links;
		size_t idx;

		log->lanes.data[0].window.cnt = 0;
		for (int i = 0; i < 60; i++) {
			bool call = test_random(&random) % 2 == 0;

			add(log, call ? FLIGHT_GPU_API : FLIGHT_GPU_KERNEL,
			    (int64_t)(test_random(&random) % 100),
			    (uint32_t)(test_random(&random) % 12), call ? LAUNCH : KERNEL);
		}
		assert_int_equal(gpulinks_init(&links, log, INT64_MIN, INT64_MAX), 0);
		vec_foreach(at, &links.records) {
			const struct ring_record *slow = slow_caller(&links, *at);

			if ((*at)->kind == FLIGHT_GPU_API)
				continue;
			assert_int_equal(gpulinks_caller(&links, *at, &idx), slow != NULL);
			if (slow != NULL)
				assert_ptr_equal(links.records.data[idx], slow);
		}
		gpulinks_done(&links);
	}
}

static void records_outside_the_window_are_left_out(void **state)
{
	struct flightlog *log = *state;
	struct gpulinks links;

	add(log, FLIGHT_GPU_KERNEL, 0, 1, KERNEL);
	add(log, FLIGHT_GPU_KERNEL, 8, 2, KERNEL);
	add(log, FLIGHT_GPU_KERNEL, 20, 3, KERNEL);
	assert_int_equal(gpulinks_init(&links, log, 10, 20), 0);
	assert_int_equal(links.records.cnt, 1);
	assert_int_equal(flight_gpu_correlation(links.records.data[0]->extra), 2);
	gpulinks_done(&links);
}

static void missing_memory_is_reported(void **state)
{
	struct flightlog *log = *state;
	struct ring_record comm = { .time_ns = 0, .value = 50, .kind = FLIGHT_COLLECTIVE };
	int ret, cnt = 0;

	add(log, FLIGHT_GPU_API, 1, 1, GRAPH_LAUNCH);
	add(log, FLIGHT_GPU_API, 2, 2, LAUNCH);
	add(log, FLIGHT_GPU_KERNEL, 8, 2, NCCL_KERNEL);
	assert_int_equal(vec_push(&log->lanes.data[0].records, comm), 0);
	do {
		struct gpulinks links;

		allocations_left = cnt++;
		ret = gpulinks_init(&links, log, INT64_MIN, INT64_MAX);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		gpulinks_done(&links);
	} while (ret != 0);
	assert_true(cnt > 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(callers_are_those_that_a_search_of_all_finds,
						open_log, close_log),
		cmocka_unit_test_setup_teardown(records_outside_the_window_are_left_out, open_log,
						close_log),
		cmocka_unit_test_setup_teardown(missing_memory_is_reported, open_log, close_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
