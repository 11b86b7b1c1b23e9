/* SPDX-License-Identifier: Apache-2.0 */
/* Records of GPUs become events as Kineto's reader would give them. */
#include "model/elements.h"
#include "read/common/test_events.h"

enum { STREAM, THREAD, COMM_STREAM };

static void add_lanes(struct fixture *x)
{
	x->f->gpu_lanes[STREAM] = (struct flight_gpu_lane){ 0, 7 };
	x->f->gpu_lanes[THREAD] = (struct flight_gpu_lane){ FLIGHT_GPU_THREAD, 71 };
	x->f->gpu_lanes[COMM_STREAM] = (struct flight_gpu_lane){ 0, 20 };
	x->f->gpu_lane_cnt = 3;
	x->f->gpu_name = recorder_string(x->f, "NVIDIA H100");
}

static int open_with_lanes(void **state)
{
	(void)open_fixture(state);
	add_lanes(*state);
	return 0;
}

static void gpu(struct fixture *x, enum flight_kind kind, uint32_t detail, const char *name,
		int64_t from_ms, int64_t to_ms, uint32_t correlation, uint16_t size)
{
	recorder_push(
		x->f, x->lane, true,
		(struct ring_record){ .time_ns = T0 + from_ms * MS,
				      .value = (to_ms - from_ms) * MS,
				      .kind = (uint16_t)kind,
				      .detail = (uint16_t)detail,
				      .extra = flight_gpu_extra(correlation, size,
								recorder_string(x->f, name)) });
}

static void a_kernel_has_its_stream_its_size_and_its_launch(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;
	const struct event *kernel;

	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "gemm", 5, 9, 33, elements_encode(1024));
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaLaunchKernel", 2, 3, 33, 0);
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaLaunchKernel", 3, 4, 34, 0);
	trace = make(x, 100 * MS);
	kernel = find(trace, "gemm", 0);
	assert_event(trace, "gemm", 0, 5, 9);
	assert_int_equal(kernel->kind, KIND_KERNEL);
	assert_int_equal(trace->lanes[kernel->lane].type, LANE_STREAM);
	assert_int_equal(trace->lanes[kernel->lane].pid, 0);
	assert_int_equal(trace->lanes[kernel->lane].tid, 7);
	assert_int_equal(event_args_borrow(trace, kernel)->elements, 1024);
	assert_ptr_equal(&trace->events[kernel->parent], find(trace, "cudaLaunchKernel", 0));
	assert_int_equal(trace->events[kernel->parent].kind, KIND_RUNTIME);
	assert_int_equal(trace->lanes[trace->events[kernel->parent].lane].type, LANE_THREAD);
	assert_true(trace->meta.has_device);
	assert_string_equal(trace->meta.device_name, "NVIDIA H100");
}

static void copies_waits_and_overhead_keep_their_kinds(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;
	const struct event *copy;

	gpu(x, FLIGHT_GPU_MEMOP, STREAM, "Memcpy HtoD (Pinned -> Device)", 5, 9, 3,
	    elements_encode(4096));
	gpu(x, FLIGHT_GPU_SYNC, STREAM, "Stream Sync", 6, 9, 4, 0);
	gpu(x, FLIGHT_GPU_OVERHEAD, THREAD, "Buffer Flush", 7, 8, 0, 0);
	trace = make(x, 100 * MS);
	copy = find(trace, "Memcpy HtoD (Pinned -> Device)", 0);
	assert_int_equal(copy->kind, KIND_GPU_MEMOP);
	assert_int_equal(event_args_borrow(trace, copy)->bytes, 4096);
	assert_int_equal(copy->parent, EVENT_NONE);
	assert_int_equal(find(trace, "Stream Sync", 0)->kind, KIND_SYNC);
	assert_int_equal(find(trace, "Buffer Flush", 0)->kind, KIND_OVERHEAD);
}

static void a_collectives_kernel_has_what_its_launching_thread_knew(void **state)
{
	struct fixture *x = *state;
	uint32_t name = recorder_string(x->f, "nccl:all_reduce");
	uint32_t group = recorder_string(x->f, "0"), what = recorder_string(x->f, "allreduce");
	const struct event_args *args;
	const struct trace *trace;

	recorder_push(x->f, x->lane, false,
		      (struct ring_record){ .time_ns = T0 + 2 * MS,
					    .value = 3 * MS,
					    .kind = FLIGHT_COLLECTIVE,
					    .extra = name });
	recorder_push(x->f, x->lane, false,
		      (struct ring_record){ .time_ns = T0 + 2 * MS,
					    .value = 1 << 20,
					    .kind = FLIGHT_COLLECTIVE_ARGS,
					    .extra = 17 });
	recorder_push(x->f, x->lane, false,
		      (struct ring_record){ .time_ns = T0 + 2 * MS,
					    .value = INT64_C(8) << 32 | group,
					    .kind = FLIGHT_COLLECTIVE_GROUP,
					    .extra = what });
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaLaunchKernelExC", 3, 4, 9, 0);
	gpu(x, FLIGHT_GPU_KERNEL, COMM_STREAM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4, 40, 9,
	    0);
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaLaunchKernelExC", 6, 7, 10, 0);
	gpu(x, FLIGHT_GPU_KERNEL, COMM_STREAM, "ncclDevKernel_AllGather_RING_LL", 40, 50, 10, 0);
	trace = make(x, 100 * MS);
	args = event_args_borrow(trace, find(trace, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0));
	assert_non_null(args);
	assert_int_equal(args->bytes, 1 << 20);
	assert_int_equal(args->seq, 17);
	assert_int_equal(args->group_size, 8);
	assert_string_equal(strtab_text(&trace->strings, args->collective), "allreduce");
	assert_null(event_args_borrow(trace, find(trace, "ncclDevKernel_AllGather_RING_LL", 0)));
}

/* As the NCCL plugin records it, when the kernel is launched. */
static void nccl_reports(struct fixture *x, int64_t from_ms, uint64_t seq, int64_t bytes)
{
	struct ring_record records[] = {
		{ .kind = FLIGHT_COLLECTIVE, .extra = recorder_string(x->f, "ncclAllReduce") },
		{ .kind = FLIGHT_COLLECTIVE_ARGS, .value = bytes, .extra = seq },
		{ .kind = FLIGHT_COLLECTIVE_GROUP,
		  .value = INT64_C(8) << 32 | recorder_string(x->f, "dp 5ca1ab1e"),
		  .extra = recorder_string(x->f, "all_reduce") },
		{ .kind = FLIGHT_COLLECTIVE_HOW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		records[i].time_ns = T0 + from_ms * MS;
		recorder_push(x->f, x->lane, false, records[i]);
	}
}

static void launch_nccl(struct fixture *x, int64_t at_ms, uint32_t correlation)
{
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaLaunchKernelExC", at_ms, at_ms + 1, correlation, 0);
	gpu(x, FLIGHT_GPU_KERNEL, COMM_STREAM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
	    10 * at_ms, 10 * at_ms + 5, correlation, 0);
}

static void calls_nccl_reports_after_a_launch_belong_to_its_kernel(void **state)
{
	const char *name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
	struct fixture *x = *state;
	const struct event_args *args;
	const struct trace *trace;

	launch_nccl(x, 1, 9);
	nccl_reports(x, 3, 17, 1000);
	launch_nccl(x, 4, 10); /* of three */
	nccl_reports(x, 6, 18, 1000);
	nccl_reports(x, 6, 19, 1000);
	nccl_reports(x, 7, 20, 500);
	launch_nccl(x, 8, 11); /* of which NCCL reports nothing */
	trace = make(x, 100 * MS);
	args = event_args_borrow(trace, find(trace, name, 0));
	assert_int_equal(args->seq, 17);
	assert_int_equal(args->bytes, 1000);
	assert_int_equal(args->group_size, 8);
	args = event_args_borrow(trace, find(trace, name, 1));
	assert_int_equal(args->seq, 18);
	assert_int_equal(args->bytes, 2500);
	assert_null(event_args_borrow(trace, find(trace, name, 2)));
}

static void pytorchs_collective_around_a_launch_comes_first(void **state)
{
	const char *name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
	struct fixture *x = *state;
	const struct trace *trace;
	struct ring_record records[] = {
		{ .kind = FLIGHT_COLLECTIVE,
		  .value = 8 * MS,
		  .extra = recorder_string(x->f, "nccl:all_reduce") },
		{ .kind = FLIGHT_COLLECTIVE_ARGS, .value = 4096, .extra = 3 },
		{ .kind = FLIGHT_COLLECTIVE_GROUP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		records[i].time_ns = T0 + 1 * MS;
		recorder_push(x->f, x->lane, false, records[i]);
	}
	launch_nccl(x, 2, 9); /* two kernels within it */
	nccl_reports(x, 3, 17, 1000);
	launch_nccl(x, 5, 10);
	nccl_reports(x, 6, 18, 1000);
	trace = make(x, 100 * MS);
	assert_int_equal(event_args_borrow(trace, find(trace, name, 0))->bytes, 4096);
	assert_int_equal(event_args_borrow(trace, find(trace, name, 1))->bytes, 4096);
}

static void names_of_the_linker_are_those_of_people(void **state)
{
	struct fixture *x = *state;

	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "_Z4gemmv", 5, 9, 0, 0);
	make(x, 100 * MS);
	assert_true(find(&x->trace, "gemm()", 0) != NULL || find(&x->trace, "gemm", 0) != NULL);
}

/* Two launches of two nodes each, whose kernels know nodes only. */
static void nodes_of_a_graph_are_counted_up_to_their_launch(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	gpu(x, FLIGHT_GPU_API, THREAD, "cudaGraphLaunch", 1, 2, 50, 0);
	gpu(x, FLIGHT_GPU_API, THREAD, "cudaGraphLaunch", 2, 3, 51, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM | FLIGHT_GPU_NODE, "a", 10, 11, 1001, 0);
	gpu(x, FLIGHT_GPU_KERNEL, COMM_STREAM | FLIGHT_GPU_NODE, "b", 11, 12, 1002, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM | FLIGHT_GPU_NODE, "a", 13, 14, 1001, 0);
	gpu(x, FLIGHT_GPU_KERNEL, COMM_STREAM | FLIGHT_GPU_NODE, "b", 14, 15, 1002, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM | FLIGHT_GPU_NODE, "a", 16, 17, 1001, 0);
	trace = make(x, 100 * MS);
	for (size_t i = 0; i < 2; i++) {
		const struct event *launch = find(trace, "cudaGraphLaunch", i);

		assert_ptr_equal(&trace->events[find(trace, "a", i)->parent], launch);
		assert_ptr_equal(&trace->events[find(trace, "b", i)->parent], launch);
	}
	assert_int_equal(find(trace, "a", 2)->parent, EVENT_NONE);
}

/* The driver waits in a system call: that is the call's own affair. */
static void a_wait_inside_of_a_gpu_call_is_the_calls(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	gpu(x, FLIGHT_GPU_API, THREAD, "cudaStreamSynchronize", 20, 60, 5, 0);
	for (int64_t ms = 0; ms <= 100; ms += 2) {
		bool waits = (ms > 20 && ms < 60) || ms > 80;

		recorder_sample(x->f, 71, T0 + ms * MS, x->step,
				FLIGHT_SAMPLE_WINDOW |
					(waits ? FLIGHT_SAMPLE_SYSCALL | 202u << 4 : 0));
	}
	trace = make(x, 100 * MS);
	assert_event(trace, "cudaStreamSynchronize", 0, 20, 60);
	assert_non_null(find(trace, "<system call futex>", 0)); /* from 80 ms on */
	assert_true(find(trace, "<system call futex>", 0)->start_ns - WALL - T0 > 70 * MS);
	assert_null(find(trace, "<system call futex>", 1));
}

static void kernels_that_reach_over_an_end_are_whole_and_others_are_not_there(void **state)
{
	struct fixture *x = *state;
	const struct trace *trace;

	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "before", -9, -1, 0, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "begins", -1, 4, 0, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "ends", 98, 103, 0, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "after", 103, 104, 0, 0);
	trace = make(x, 100 * MS);
	assert_null(find(trace, "before", 0));
	assert_null(find(trace, "after", 0));
	assert_event(trace, "begins", 0, -1, 4);
	assert_event(trace, "ends", 0, 98, 103);
}

static void records_of_no_known_queue_are_not_taken(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	struct flightlog log;

	gpu(x, FLIGHT_GPU_KERNEL, 3, "nowhere", 5, 9, 0, 0);
	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "here", 5, 9, 0, 0);
	x->f->gpu_lanes[THREAD].device = -2;
	gpu(x, FLIGHT_GPU_KERNEL, THREAD, "of no device", 5, 9, 0, 0);
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	flight_unmap(reader);
	assert_int_equal(log.drops.invalid, 2); /* a record and a queue, which is device 0's then */
	assert_int_equal(log.lanes.data[0].window.cnt, 2);
	flightlog_done(&log);
}

static void queues_that_take_others_places_are_seen_anew(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	struct flightlog log;

	x->f->gpu_lane_cnt = FLIGHT_GPU_LANE_CNT;
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	x->f->gpu_lanes[STREAM].id = 77;
	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "gemm", 5, 9, 0, 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	flight_unmap(reader);
	assert_int_equal(log.gpu_lanes.cnt, FLIGHT_GPU_LANE_CNT);
	assert_int_equal(log.gpu_lanes.data[STREAM].id, 77);
	assert_int_equal(log.lanes.data[0].window.cnt, 1);
	flightlog_done(&log);
}

static void a_file_keeps_queues_and_the_gpus_name(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	struct flightlog log, back;
	char path[] = "/tmp/flight_gpu_XXXXXX";
	int fd = mkstemp(path);

	gpu(x, FLIGHT_GPU_KERNEL, STREAM, "gemm", 5, 9, 33, 0);
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	flight_unmap(reader);
	assert_int_equal(flightlog_write(&log, path, NULL), 0);
	assert_int_equal(flightlog_read(path, &back, NULL), 0);
	assert_int_equal(back.gpu_lanes.cnt, 3);
	assert_memory_equal(back.gpu_lanes.data, log.gpu_lanes.data,
			    3 * sizeof(struct flight_gpu_lane));
	assert_string_equal(back.strings.data[back.gpu_name], "NVIDIA H100");
	assert_int_equal(back.lanes.data[0].window.cnt, 1);
	flightlog_done(&back);
	flightlog_done(&log);
	(void)unlink(path);
	(void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_lanes, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_has_its_stream_its_size_and_its_launch),
		TEST(copies_waits_and_overhead_keep_their_kinds),
		TEST(a_collectives_kernel_has_what_its_launching_thread_knew),
		TEST(calls_nccl_reports_after_a_launch_belong_to_its_kernel),
		TEST(pytorchs_collective_around_a_launch_comes_first),
		TEST(names_of_the_linker_are_those_of_people),
		TEST(nodes_of_a_graph_are_counted_up_to_their_launch),
		TEST(a_wait_inside_of_a_gpu_call_is_the_calls),
		TEST(kernels_that_reach_over_an_end_are_whole_and_others_are_not_there),
		TEST(records_of_no_known_queue_are_not_taken),
		TEST(queues_that_take_others_places_are_seen_anew),
		TEST(a_file_keeps_queues_and_the_gpus_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
