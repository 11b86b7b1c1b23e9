/* SPDX-License-Identifier: Apache-2.0 */
/* What the timeline draws of a GPU: its queues in a window, and what was timed without one. */
#include "model/elements.h"
#include "report/timeline/timeline.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>

#include "report/timeline/test_logs.h"
/* clang-format on */

static void a_gpus_queues_have_tracks_of_their_own(void **state)
{
	const json_t *events, *kernel;
	struct timeline_rank rank;
	struct flightlog log;
	record_vec *to;
	json_t *root;
	char *text;

	(void)state;
	log_init(&log, 0);
	assert_int_equal(vec_push(&log.gpu_lanes, (struct flight_gpu_lane){ 0, 7 }), 0);
	assert_int_equal(
		vec_push(&log.gpu_lanes, (struct flight_gpu_lane){ FLIGHT_GPU_THREAD, 100 }), 0);
	to = &log.lanes.data[0].window;
	add(to, 2000 * MS, FLIGHT_GPU_API, MS,
	    flight_gpu_extra(3, 0, add_string(&log, "cudaLaunchKernel")), 1);
	add(to, 2002 * MS, FLIGHT_GPU_KERNEL, 5 * MS,
	    flight_gpu_extra(3, 0, add_string(&log, "_ZN5model5layerILi4EEEvPf")), FLIGHT_GPU_NODE);
	add(to, 2002 * MS, FLIGHT_GPU_SYNC, 5 * MS,
	    flight_gpu_extra(4, 0, add_string(&log, "Stream Sync")), 0);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 2);
	kernel = find(events, "model::layer", 0);
	assert_string_equal(text_of(kernel, "cat"), "gpu");
	assert_string_equal(text_of(find(events, "cudaLaunchKernel", 0), "cat"), "gpu");
	assert_non_null(strstr(text, "GPU 0, stream 7"));
	assert_non_null(strstr(text, "GPU calls, thread 100"));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

static void calls_timed_on_the_gpu_have_a_track(void **state)
{
	const json_t *events, *args;
	struct timeline_rank rank;
	struct flightlog log;
	json_t *root;
	char *text;

	(void)state;
	if (!PT_WITH_GPU_CALLS)
		skip();
	log_init(&log, 0);
	add_timed(&log, 2000 * MS);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 4);
	assert_non_null(strstr(text, "\"GPU (sampled)\""));
	assert_string_equal(text_of(find(events, "cublasGemmEx", 0), "cat"), "gpu");
	args = json_object_get(find(events, "cublasGemmEx", 0), "args");
	assert_int_equal(number_of(args, "m"), 1000);
	assert_int_equal(number_of(args, "n"), 2000);
	assert_int_equal(number_of(args, "k"), 500);
	assert_int_equal(number_of(args, "matrices"), 3);
	assert_string_equal(text_of(args, "datatype"), "bfloat16");
	assert_int_equal(number_of(args, "mflop"), 6000);
	assert_int_equal(number_of(args, "gflop_per_s"), 60000);
	args = json_object_get(find(events, "cublasSgemmGroupedBatched", 0), "args");
	assert_int_equal(number_of(args, "groups"), 4);
	assert_int_equal(number_of(args, "mflop"), 8);
	assert_null(json_object_get(args, "m"));
	assert_null(json_object_get(args, "gflop_per_s")); /* it took no time */
	assert_null(json_object_get(find(events, "model::layer", 0), "args"));
	args = json_object_get(find(events, "ncclReduceScatter", 0), "args");
	assert_string_equal(text_of(args, "group"), "dp 0123");
	assert_int_equal(number_of(args, "group_size"), 8);
	assert_int_equal(number_of(args, "seq"), 41);
	assert_int_equal(number_of(args, "bytes"), 9000);
	assert_int_equal(number_of(args, "ran_as_one"), 3);
	assert_string_equal(text_of(args, "algorithm"), "RING");
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

/* Lanes of the log: two queues and the thread that feeds them. */
enum { COMPUTE, COMM, CALLS };

static void log_with_gpu(struct flightlog *log)
{
	log_init(log, 0);
	assert_int_equal(vec_push(&log->gpu_lanes, (struct flight_gpu_lane){ 0, 7 }), 0);
	assert_int_equal(vec_push(&log->gpu_lanes, (struct flight_gpu_lane){ 0, 20 }), 0);
	assert_int_equal(
		vec_push(&log->gpu_lanes, (struct flight_gpu_lane){ FLIGHT_GPU_THREAD, TRAINING }),
		0);
}

static void add_gpu(struct flightlog *log, enum flight_kind kind, uint32_t lane, int64_t from_ms,
		    int64_t dur_ms, uint32_t number, int64_t size, const char *name)
{
	add(&log->lanes.data[0].window, from_ms * MS, (uint16_t)kind, dur_ms * MS,
	    flight_gpu_extra(number, elements_encode(size), add_string(log, name)), (uint16_t)lane);
}

static json_t *draw(const struct flightlog *log, int64_t last_ns)
{
	struct timeline_rank rank;
	char *text = print(log, 1, last_ns, &rank);
	json_t *root = parse(text);

	free(text);
	return root;
}

/* The slice that the nth event of a phase lies on: its name. */
static const char *end_of(const json_t *root, char phase, size_t nth)
{
	const json_t *events = json_object_get(root, "traceEvents");

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *end = json_array_get(events, i);

		if (text_of(end, "ph")[0] != phase || nth-- > 0)
			continue;
		for (size_t k = 0; k < json_array_size(events); k++) {
			const json_t *slice = json_array_get(events, k);

			if (text_of(slice, "ph")[0] == 'X' &&
			    number_of(slice, "tid") == number_of(end, "tid") &&
			    json_equal(json_object_get(slice, "ts"), json_object_get(end, "ts")))
				return text_of(slice, "name");
		}
		return "no slice";
	}
	return NULL;
}

static const json_t *args_of(const json_t *root, const char *name, size_t nth)
{
	return json_object_get(find(json_object_get(root, "traceEvents"), name, nth), "args");
}

static void arrows_lead_from_calls_to_the_launched_work(void **state)
{
	struct flightlog log;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2000, 1, 3, -1, "cudaLaunchKernel");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2002, 1, 4, -1, "cudaMemcpyAsync");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2004, 1, 5, -1, "cudaStreamSynchronize");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2003, 2, 3, 4096, "gemm");
	add_gpu(&log, FLIGHT_GPU_MEMOP, COMPUTE, 2006, 2, 4, 1 << 20, "Memcpy HtoD");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2009, 2, 77, 32, "without owner");
	root = draw(&log, 0);
	assert_string_equal(end_of(root, 's', 0), "cudaLaunchKernel");
	assert_string_equal(end_of(root, 'f', 0), "gemm");
	assert_string_equal(end_of(root, 's', 1), "cudaMemcpyAsync");
	assert_string_equal(end_of(root, 'f', 1), "Memcpy HtoD");
	assert_null(end_of(root, 's', 2));
	assert_null(end_of(root, 'f', 2));
	assert_int_equal(number_of(args_of(root, "gemm", 0), "threads"), 4096);
	assert_int_equal(number_of(args_of(root, "gemm", 0), "correlation"), 3);
	assert_int_equal(number_of(args_of(root, "cudaLaunchKernel", 0), "correlation"), 3);
	assert_int_equal(number_of(args_of(root, "Memcpy HtoD", 0), "bytes"), 1 << 20);
	assert_int_equal(number_of(args_of(root, "Memcpy HtoD", 0), "mb_per_s"), 524);
	json_decref(root);
	flightlog_done(&log);
}

/* Kernels know their launch, or only which node of the graph they are. */
static void a_launch_of_a_graph_has_one_arrow(void **state)
{
	struct flightlog log;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2000, 1, 3, -1, "cudaGraphLaunch");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2002, 1, 4, -1, "cuGraphLaunch");
	for (int i = 0; i < 20; i++)
		add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2010 + 2 * i, 1, 3, 32, "first");
	for (int i = 0; i < 20; i++)
		add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE | FLIGHT_GPU_NODE, 2100 + 2 * i, 1,
			100 + (uint32_t)i, 32, "node");
	root = draw(&log, 0);
	/* The second launch's kernels don't know it: they are taken for the first one's. */
	assert_string_equal(end_of(root, 's', 0), "cudaGraphLaunch");
	assert_string_equal(end_of(root, 'f', 0), "first");
	assert_null(end_of(root, 's', 1));
	assert_int_equal(number_of(args_of(root, "node", 0), "graph_node"), 100);
	assert_null(json_object_get(args_of(root, "node", 0), "correlation"));
	json_decref(root);
	flightlog_done(&log);
}

/* Nor one that would go back in time, or from a slice without length. */
static void no_arrow_has_one_end_only(void **state)
{
	struct flightlog log;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2000, 1, 3, -1, "too early to be shown");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2090, 20, 3, 32, "a");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2120, 1, 4, -1, "later");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2115, 1, 4, 32, "b");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2130, 0, 5, -1, "short");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2135, 1, 5, 32, "c");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2140, 1, 6, -1, "long");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2150, 50, 6, 32, "d");
	root = draw(&log, 100 * MS);
	assert_string_equal(end_of(root, 's', 0), "long");
	assert_string_equal(end_of(root, 'f', 0), "d");
	assert_null(end_of(root, 's', 1));
	assert_null(end_of(root, 'f', 1));
	json_decref(root);
	flightlog_done(&log);
}

/* A number of the window before comes again: each kernel has the call of its own window. */
static void numbers_may_come_again(void **state)
{
	struct flightlog log;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2000, 1, 3, -1, "old call");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2002, 1, 3, 32, "old");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 3000, 1, 3, -1, "new call");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 3002, 1, 3, 32, "new");
	root = draw(&log, 0);
	assert_string_equal(end_of(root, 's', 0), "old call");
	assert_string_equal(end_of(root, 'f', 0), "old");
	assert_string_equal(end_of(root, 's', 1), "new call");
	assert_string_equal(end_of(root, 'f', 1), "new");
	json_decref(root);
	flightlog_done(&log);
}

static void add_nccl(struct flightlog *log, int64_t start_ms, int64_t bytes, uint64_t seq,
		     uint32_t what)
{
	record_vec *to = &log->lanes.data[0].records;
	int64_t group = INT64_C(8) << 32 | add_string(log, "0x1234");

	add(to, start_ms * MS, FLIGHT_COLLECTIVE, 0, what, 0);
	add(to, start_ms * MS, FLIGHT_COLLECTIVE_ARGS, bytes, seq, 0);
	add(to, start_ms * MS, FLIGHT_COLLECTIVE_GROUP, group, what, 0);
	add(to, start_ms * MS, FLIGHT_COLLECTIVE_HOW, add_string(log, "RING"), 0, 0);
}

/* 8 ranks reduce 80 MB in 10 ms: 8 GB/s, of which each link carries 14/8. NCCL tells behind. */
static void a_kernel_of_a_collective_has_the_records_of_its_thread(void **state)
{
	const json_t *args;
	struct flightlog log;
	record_vec *to;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	to = &log.lanes.data[0].records;
	add(to, 2000 * MS, FLIGHT_COLLECTIVE, 5 * MS, add_string(&log, "nccl:all_reduce"), 0);
	add(to, 2000 * MS, FLIGHT_COLLECTIVE_ARGS, 80000000, 41, 0);
	add(to, 2000 * MS, FLIGHT_COLLECTIVE_GROUP, INT64_C(8) << 32 | add_string(&log, "dp"),
	    add_string(&log, "allreduce"), 0);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2002, 1, 3, -1, "cudaLaunchKernelExC");
	add_nccl(&log, 2003, 80000000, 7, add_string(&log, "AllReduce"));
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMM, 2010, 10, 3, 512, "ncclDevKernel_AllReduce");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2004, 1, 4, -1, "cudaLaunchKernel");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMPUTE, 2010, 10, 4, 512, "gemm");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2020, 1, 5, -1, "cudaLaunchKernelExC");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMM, 2030, 10, 5, 512, "ncclDevKernel_AllGather");
	root = draw(&log, 0);
	args = args_of(root, "ncclDevKernel_AllReduce", 0);
	assert_string_equal(text_of(args, "group"), "dp");
	assert_int_equal(number_of(args, "seq"), 41);
	assert_int_equal(number_of(args, "bytes"), 80000000);
	assert_string_equal(text_of(args, "algorithm"), "RING");
	assert_int_equal(number_of(args, "bus_mb_per_s"), 14000);
	assert_null(json_object_get(args_of(root, "gemm", 0), "group"));
	assert_null(json_object_get(args_of(root, "ncclDevKernel_AllGather", 0), "group"));
	json_decref(root);
	flightlog_done(&log);
}

/* Of a kernel that is several collectives the bytes of all count, if they are of one kind. */
static void collectives_in_one_kernel_are_summed_up(void **state)
{
	const json_t *args;
	struct flightlog log;
	uint32_t gather;
	json_t *root;

	(void)state;
	log_with_gpu(&log);
	gather = add_string(&log, "AllGather");
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2000, 1, 3, -1, "cudaLaunchKernelExC");
	add_nccl(&log, 2002, 30000000, 7, gather);
	add_nccl(&log, 2003, 50000000, 8, gather);
	add_gpu(&log, FLIGHT_GPU_API, CALLS, 2004, 1, 4, -1, "cudaLaunchKernelExC");
	add_nccl(&log, 2005, 1, 9, gather);
	add_nccl(&log, 2006, 1, 10, add_string(&log, "Broadcast"));
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMM, 2010, 10, 3, 512, "ncclKernel_one");
	add_gpu(&log, FLIGHT_GPU_KERNEL, COMM, 2030, 10, 4, 512, "ncclKernel_two");
	root = draw(&log, 0);
	args = args_of(root, "ncclKernel_one", 0);
	assert_int_equal(number_of(args, "seq"), 7);
	assert_int_equal(number_of(args, "bytes"), 80000000);
	assert_int_equal(number_of(args, "ran_as_one"), 2);
	assert_int_equal(number_of(args, "bus_mb_per_s"), 7000);
	args = args_of(root, "ncclKernel_two", 0);
	assert_int_equal(number_of(args, "ran_as_one"), 2);
	assert_null(json_object_get(args, "bytes"));
	assert_null(json_object_get(args, "bus_mb_per_s"));
	json_decref(root);
	flightlog_done(&log);
}

/* Records may be missing, and numbers anything. */
static void the_remaining_timed_calls_are_drawn(void **state)
{
	const json_t *events;
	struct timeline_rank rank;
	struct flightlog log;
	record_vec *to;
	json_t *root;
	char *text;

	(void)state;
	if (!PT_WITH_GPU_CALLS)
		skip();
	log_init(&log, 0);
	to = &log.lanes.data[0].records;
	add(to, 2000 * MS, FLIGHT_TIMED, MS, add_string(&log, "cublasLtMatmul"), 0);
	add(to, 2000 * MS, FLIGHT_TIMED_SHAPE, -1, UINT64_MAX, UINT16_MAX);
	add(to, 2002 * MS, FLIGHT_COLLECTIVE_DONE, MS, add_string(&log, "ncclSendRecv"), 1);
	add(to, 2002 * MS, FLIGHT_COLLECTIVE_ARGS, 1, 1, 0);
	add(to, 2004 * MS, FLIGHT_TIMED, MS, add_string(&log, "cublasSgemm_v2"), 0);
	text = print(&log, 1, 0, &rank);
	root = parse(text);
	events = json_object_get(root, "traceEvents");
	assert_int_equal(rank.slice_cnt, 3);
	assert_null(json_object_get(json_object_get(find(events, "cublasLtMatmul", 0), "args"),
				    "mflop"));
	assert_null(json_object_get(find(events, "ncclSendRecv", 0), "args"));
	assert_null(json_object_get(find(events, "cublasSgemm_v2", 0), "args"));
	json_decref(root);
	free(text);
	flightlog_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpus_queues_have_tracks_of_their_own),
		cmocka_unit_test(arrows_lead_from_calls_to_the_launched_work),
		cmocka_unit_test(a_launch_of_a_graph_has_one_arrow),
		cmocka_unit_test(no_arrow_has_one_end_only),
		cmocka_unit_test(numbers_may_come_again),
		cmocka_unit_test(a_kernel_of_a_collective_has_the_records_of_its_thread),
		cmocka_unit_test(collectives_in_one_kernel_are_summed_up),
		cmocka_unit_test(calls_timed_on_the_gpu_have_a_track),
		cmocka_unit_test(the_remaining_timed_calls_are_drawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
