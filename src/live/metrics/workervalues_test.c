/* SPDX-License-Identifier: Apache-2.0 */
/* Recorders made up by hand become pages of metrics. */
#include "collective/streaming.h"
#include "format/flightlog/test_records.h"
#include "live/metrics/hostvalues.h"
#include "model/elements.h"
#include "model/report.h"

#define MS NSEC_PER_MSEC

static const struct run_options plain = { .budget_always_frac = 0.005 };
static const struct run_options compat = { .metrics_xpu = true };

static struct str page(struct metrics_host *host)
{
	struct str out = { 0 };

	assert_int_equal(metrics_render(metrics_host_borrow(host), EXPOSITION_PROMETHEUS, &out), 0);
	return out;
}

static void expect(struct metrics_host *host, const char *line)
{
	struct str out = page(host);

	if (strstr(out.data, line) == NULL)
		fail_msg("expected %s found %s", line, out.data);
	str_done(&out);
}

static void expect_no(struct metrics_host *host, const char *text)
{
	struct str out = page(host);

	if (strstr(out.data, text) != NULL)
		fail_msg("found %s", text);
	str_done(&out);
}

/* As torch's hook writes it; seq -1: unknown. */
static void push_collective(struct flight *f, const char *name, int64_t start_ns, int64_t dur_ns,
			    int64_t bytes, int64_t seq, uint32_t size)
{
	recorder_push(f, 0, false,
		      (struct ring_record){ .kind = FLIGHT_COLLECTIVE,
					    .time_ns = start_ns,
					    .value = dur_ns,
					    .extra = recorder_string(f, name) });
	recorder_push(f, 0, false,
		      (struct ring_record){ .kind = FLIGHT_COLLECTIVE_ARGS,
					    .time_ns = start_ns,
					    .value = bytes,
					    .extra = (uint64_t)seq });
	recorder_push(f, 0, false,
		      (struct ring_record){ .kind = FLIGHT_COLLECTIVE_GROUP,
					    .time_ns = start_ns,
					    .value = (int64_t)((uint64_t)size << 32) });
}

static struct test_recorder make_recorder(int32_t world_size)
{
	struct test_recorder r = recorder_open();

	r.flight->world_size = world_size;
	(void)recorder_lane(r.flight, 71, "python");
	return r;
}

/* Two ranks on one host. */
struct two {
	struct metrics_host *host;
	struct metrics_worker *workers[2];
	struct test_recorder recorders[2];
};

static struct two open_two(const struct run_options *options, int32_t world_size)
{
	struct two two = { .host = metrics_host_new(options) };

	assert_non_null(two.host);
	for (int i = 0; i < 2; i++) {
		two.workers[i] = metrics_worker_new(two.host, i, i);
		assert_non_null(two.workers[i]);
		two.recorders[i] = make_recorder(world_size);
	}
	metrics_host_tick(two.host, 2, 1);
	return two;
}

static void follow_both(struct two *two)
{
	for (int i = 0; i < 2; i++)
		metrics_worker_follow(two->workers[i], two->recorders[i].flight, true);
}

static void close_two(struct two *two)
{
	for (int i = 0; i < 2; i++)
		recorder_close(&two->recorders[i]);
	two->host = metrics_host_free(two->host);
}

static void every_mark_counts_once(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct metrics_worker *worker = metrics_worker_new(host, 3, -1);
	const struct ring_record marks[] = {
		{ .kind = MARK_DATALOADER },
		{ .kind = MARK_DATALOADER_END, .value = 2 * MS },
		{ .kind = MARK_GC, .value = 5 * MS, .detail = 2 },
		{ .kind = MARK_GC, .value = 1 * MS, .detail = 9 }, /* the last generation */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		metrics_worker_mark(worker, &marks[i]);
	metrics_worker_iteration(worker, 150 * MS);
	expect(host, "dataloader_wait_seconds_sum{rank=\"3\",local_rank=\"\"} 0.002\n");
	expect(host, "garbage_collection_seconds_count{rank=\"3\",local_rank=\"\","
		     "generation=\"2\"} 2\n");
	expect(host, "iteration_seconds_bucket{rank=\"3\",local_rank=\"\",le=\"0.15\"} 1\n");
	expect(host, "iteration_seconds_bucket{rank=\"3\",local_rank=\"\",le=\"0.1\"} 0\n");
	expect(host, "perftracker_marks_total{rank=\"3\",local_rank=\"\","
		     "mark=\"garbage_collection\"} 2\n");
	(void)metrics_host_free(host);
}

static void counts_go_on_when_a_rank_is_started_anew(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	const struct ring_record mark = { .kind = MARK_OPTIMIZER };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct metrics_worker *worker = metrics_worker_new(host, 0, 0);

		metrics_worker_mark(worker, &mark);
		(void)metrics_worker_free(worker);
	}
	expect(host, "mark=\"optimizer\"} 2\n");
	expect(host, "perftracker_worker_starts_total{rank=\"0\",local_rank=\"0\"} 2\n");
	metrics_host_ended(host, 0, 0);
	metrics_host_ended(host, 0, 9);
	metrics_host_ended(host, 0, 9);
	metrics_host_ended(host, 0, 3 << 8);
	metrics_host_restarts(host, 2);
	metrics_host_restarts(host, 2);
	expect(host, "perftracker_worker_ends_total{rank=\"0\",how=\"ok\"} 1\n");
	expect(host, "perftracker_worker_ends_total{rank=\"0\",how=\"signal\"} 2\n");
	expect(host, "perftracker_worker_ends_total{rank=\"0\",how=\"error\"} 1\n");
	expect(host, "perftracker_job_restarts_total 2\n");
	(void)metrics_host_free(host);
}

static void waiting_and_transfer_are_separated(void **state)
{
	struct two two = open_two(&plain, 4);

	(void)state;
	push_collective(two.recorders[0].flight, "gloo:all_reduce", 100 * MS, 50 * MS, 8000, 7, 2);
	push_collective(two.recorders[1].flight, "gloo:all_reduce", 140 * MS, 10 * MS, 8000, 7, 2);
	follow_both(&two);
	follow_both(&two); /* nothing is taken twice */
#define LABELS(rank)                                                                            \
	"{rank=\"" rank "\",local_rank=\"" rank "\",operation=\"all_reduce\",backend=\"gloo\"," \
	"dtype=\"unknown\"} "
	expect(two.host, "collective_seconds_sum" LABELS("0") "0.05\n");
	expect(two.host, "collective_wait_seconds_sum" LABELS("0") "0.04\n");
	expect(two.host, "collective_wait_seconds_sum" LABELS("1") "0\n");
	expect(two.host, "collective_transfer_seconds_sum" LABELS("0") "0.01\n");
	expect(two.host, "collective_transfer_seconds_sum" LABELS("1") "0.01\n");
	expect(two.host, "collective_transfer_seconds_count" LABELS("1") "1\n");
	expect(two.host, "collective_bus_bytes_total" LABELS("0") "8000\n");
	expect(two.host, "collective_bus_seconds_total" LABELS("0") "0.01\n");
	close_two(&two);
}

static void groups_of_several_hosts_have_whole_times_only(void **state)
{
	struct two two = open_two(&plain, 8);

	(void)state;
	push_collective(two.recorders[0].flight, "mpi:all_gather", 100 * MS, 50 * MS, 8000, 7, 8);
	follow_both(&two);
	expect(two.host, "collective_bus_bytes_total{rank=\"0\",local_rank=\"0\",operation="
			 "\"all_gather\",backend=\"mpi\",dtype=\"unknown\"} 7000\n");
	expect_no(two.host, "collective_wait_seconds");
	close_two(&two);
}

static void without_numbers_those_that_overlap_are_one(void **state)
{
	struct two two = open_two(&plain, 2);

	(void)state;
	for (int i = 0; i < 3; i++) {
		push_collective(two.recorders[0].flight, "gloo:all_reduce", i * 100 * MS, 50 * MS,
				64, -1, 0);
		push_collective(two.recorders[1].flight, "gloo:all_reduce", (i * 100 + 20) * MS,
				30 * MS, 64, -1, 0);
	}
	follow_both(&two);
	expect(two.host, "collective_wait_seconds_sum" LABELS("0") "0.06\n");
	expect(two.host, "collective_transfer_seconds_count" LABELS("1") "3\n");
	close_two(&two);
}

static void the_time_of_a_launch_is_not_the_time_of_a_collective(void **state)
{
	struct two two = open_two(&plain, 2);

	(void)state;
	push_collective(two.recorders[0].flight, "nccl:all_reduce", 1, 5000, 64, 1, 2);
	follow_both(&two);
	expect(two.host, "collective_launch_seconds_count{rank=\"0\",local_rank=\"0\",operation="
			 "\"all_reduce\",backend=\"torch-nccl\",dtype=\"unknown\"} 1\n");
	expect_no(two.host, "perftracker_collective_seconds");
	close_two(&two);
}

/* The writer may be between two of the records that belong together. */
static void records_that_come_in_parts_are_one_collective(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct metrics_worker *worker = metrics_worker_new(host, 0, 0);
	struct test_recorder r = make_recorder(4);
	uint32_t name = recorder_string(r.flight, "ncclAllReduce");
	uint32_t dtype = recorder_string(r.flight, "ncclFloat32");
	const struct ring_record parts[] = {
		{ .kind = FLIGHT_COLLECTIVE, .time_ns = 5, .value = 1000, .extra = name },
		{ .kind = FLIGHT_COLLECTIVE_ARGS, .time_ns = 5, .value = 4096, .extra = 3 },
		{ .kind = FLIGHT_COLLECTIVE_GROUP, .time_ns = 5, .value = INT64_C(4) << 32 },
		{ .kind = FLIGHT_COLLECTIVE_HOW,
		  .time_ns = 5,
		  .value = (int64_t)((uint64_t)dtype << 32) },
	};

	(void)state;
	metrics_host_tick(host, 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		expect_no(host, "perftracker_collective");
		recorder_push(r.flight, 0, false, parts[i]);
		metrics_worker_follow(worker, r.flight, false);
	}
	expect(host, "collective_launch_seconds_count{rank=\"0\",local_rank=\"0\",operation="
		     "\"all_reduce\",backend=\"nccl\",dtype=\"float32\"} 1\n");
	expect(host, "collective_payload_bytes_sum{rank=\"0\",local_rank=\"0\",operation="
		     "\"all_reduce\",backend=\"nccl\",dtype=\"float32\"} 4096\n");
	recorder_close(&r);
	(void)metrics_host_free(host);
}

/* As NCCL's plugin records a GPU time: a duration without a start. */
static void push_done(struct flight *f, int64_t launched_ns, int64_t dur_ns, int64_t bytes,
		      int64_t seq)
{
	uint32_t name = recorder_string(f, "ncclAllReduce");
	uint32_t group = recorder_string(f, "dp 0123");
	uint32_t dtype = recorder_string(f, "ncclBfloat16");
	const struct ring_record records[] = {
		{ .kind = FLIGHT_COLLECTIVE_DONE, .value = dur_ns, .detail = 1, .extra = name },
		{ .kind = FLIGHT_COLLECTIVE_ARGS, .value = bytes, .extra = (uint64_t)seq },
		{ .kind = FLIGHT_COLLECTIVE_GROUP, .value = (int64_t)2 << 32 | group },
		{ .kind = FLIGHT_COLLECTIVE_HOW, .value = (int64_t)((uint64_t)dtype << 32) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		struct ring_record record = records[i];

		record.time_ns = launched_ns;
		recorder_push(f, 0, false, record);
	}
}

#define NCCL_LABELS(rank)                                                                       \
	"{rank=\"" rank "\",local_rank=\"" rank "\",operation=\"all_reduce\",backend=\"nccl\"," \
	"dtype=\"bfloat16\"} "

static void collectives_on_the_gpu_end_together(void **state)
{
	struct two two = open_two(&compat, 4);

	(void)state;
	push_done(two.recorders[0].flight, 100 * MS, 50 * MS, 80000000, 7);
	push_done(two.recorders[1].flight, 170 * MS, 10 * MS, 80000000, 7); /* launched behind it */
	follow_both(&two);
	metrics_host_tick(two.host, 2, 2 * NSEC_PER_SEC);
	expect(two.host, "collective_seconds_sum" NCCL_LABELS("0") "0.05\n");
	expect(two.host, "collective_wait_seconds_sum" NCCL_LABELS("0") "0.04\n");
	expect(two.host, "collective_wait_seconds_sum" NCCL_LABELS("1") "0\n");
	expect(two.host, "collective_transfer_seconds_sum" NCCL_LABELS("0") "0.01\n");
	expect(two.host, "collective_bus_seconds_total" NCCL_LABELS("1") "0.01\n");
	expect(two.host,
	       "collective_bus_rate_bytes_per_second_sum" NCCL_LABELS("0") "8000000000\n");
	expect(two.host, "collective_bus_rate_bytes_per_second_bucket{rank=\"0\",local_rank=\"0\","
			 "operation=\"all_reduce\",backend=\"nccl\",dtype=\"bfloat16\","
			 "le=\"5000000000.0\"} 0\n");
	expect(two.host,
	       "dtype=\"bfloat16\",operation=\"AllReduce\",algorithm=\"NOT_SET\",transport="
	       "\"IntraNode\"");
	expect_no(two.host, "collective_launch_seconds");
	close_two(&two);
}

/* A collective that the other rank does not record is counted by itself, later. */
static void a_collective_of_the_gpu_without_its_peer_has_no_parts(void **state)
{
	struct two two = open_two(&plain, 4);

	(void)state;
	push_done(two.recorders[0].flight, 100 * MS, 50 * MS, 80000000, 7);
	follow_both(&two);
	expect(two.host, "collective_seconds_count" NCCL_LABELS("0") "1\n");
	expect_no(two.host, "collective_bus_bytes_total");
	metrics_host_tick(two.host, 2, 100 * MS + STREAM_AGE_NS + NSEC_PER_SEC);
	expect(two.host, "collective_bus_bytes_total" NCCL_LABELS("0") "80000000\n");
	expect_no(two.host, "collective_wait_seconds");
	close_two(&two);
}

static void push_plain(struct flight *f, uint16_t kind, int64_t value, uint64_t extra,
		       uint16_t detail)
{
	recorder_push(f, 0, false,
		      (struct ring_record){ .kind = kind,
					    .time_ns = 5,
					    .value = value,
					    .extra = extra,
					    .detail = detail });
}

static void matrix_multiplications_have_time_and_speed(void **state)
{
	struct two two;
	struct flight *f;
	uint32_t gemm, kernel;

	(void)state;
	if (!PT_WITH_GPU_CALLS)
		skip();
	two = open_two(&compat, 2);
	f = two.recorders[0].flight;
	gemm = recorder_string(f, "cublasGemmEx");
	kernel = recorder_string(f, "triton_softmax");
	push_plain(f, FLIGHT_CALLS, 1000, 5000000, FLIGHT_CALLS_MATMUL);
	push_plain(f, FLIGHT_CALLS, 70, 0, FLIGHT_CALLS_LAUNCH);
	push_plain(f, FLIGHT_CALLS, 1500, 7500000, FLIGHT_CALLS_MATMUL);
	push_plain(f, FLIGHT_TIMED, 100000, gemm, 0);
	metrics_worker_follow(two.workers[0], f, false); /* its shape is not yet recorded */
	expect_no(two.host, "perftracker_matmul_seconds");
	push_plain(f, FLIGHT_TIMED_SHAPE, (int64_t)1000 << 32 | 2000, (uint64_t)1000 << 32 | 5, 14);
	push_plain(f, FLIGHT_TIMED, 20000, recorder_string(f, "cublasSgemmGroupedBatched"), 0);
	push_plain(f, FLIGHT_TIMED_GROUPS, 4000000000, (uint64_t)8 << 32 | 8, 0);
	push_plain(f, FLIGHT_TIMED, 3000, kernel, 0);
	push_plain(f, FLIGHT_TIMED, 4000, kernel, 0);
	push_plain(f, FLIGHT_CALLS, 1400, 0, FLIGHT_CALLS_MATMUL); /* back: nonsense */
	metrics_worker_follow(two.workers[0], f, false);
	metrics_host_tick(two.host, 2, 2 * NSEC_PER_SEC);
#define RANK "{rank=\"0\",local_rank=\"0\","
	expect(two.host, "perftracker_gpu_calls_total" RANK "kind=\"matmul\"} 1500\n");
	expect(two.host, "perftracker_gpu_calls_total" RANK "kind=\"launch\"} 70\n");
	expect(two.host, "matmul_teraflop_total{rank=\"0\",local_rank=\"0\"} 7.5\n");
	expect(two.host, "matmul_seconds_sum" RANK "dtype=\"bfloat16\"} 0.0001\n");
	expect(two.host, "matmul_teraflop_per_second_sum" RANK "dtype=\"bfloat16\"} 200\n");
	expect(two.host, "matmul_teraflop_per_second_sum" RANK "dtype=\"float32\"} 200\n");
	expect(two.host,
	       "matmul_teraflop_per_second_bucket" RANK "dtype=\"bfloat16\",le=\"100.0\"} 0\n");
	expect(two.host,
	       "matmul_teraflop_per_second_bucket" RANK "dtype=\"bfloat16\",le=\"200.0\"} 1\n");
	expect(two.host, "gpu_kernel_sampled_seconds_sum" RANK "kind=\"reduction\"} 0.000007\n");
	expect(two.host, "XPU_TIMER_MM_KERNEL_FLOPS{pod_name=\"NOT_SET\",job_name=\"NOT_SET\",ip="
			 "\"NOT_SET\",rank=\"0\",local_rank=\"0\",dtype=\"bfloat16\",operation="
			 "\"Matmul\",level=\"NOT_SET\"} 200\n");
	close_two(&two);
}

static void network_steps_are_summed_by_the_cause_of_waiting(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct metrics_worker *worker = metrics_worker_new(host, 0, 0);
	struct test_recorder r = make_recorder(4);
	uint32_t name = recorder_string(r.flight, "ncclSendRecv");
	const struct ring_record records[] = {
		{ .kind = FLIGHT_NETWORK, .time_ns = 5, .value = 2 * MS, .extra = name },
		{ .kind = FLIGHT_COLLECTIVE_ARGS, .time_ns = 5, .value = 9000, .extra = 3 },
		{ .kind = FLIGHT_COLLECTIVE_GROUP, .time_ns = 5, .value = INT64_C(4) << 32 },
		{ .kind = FLIGHT_NETWORK_SEND,
		  .time_ns = 5,
		  .value = flight_us_pair(10, 20),
		  .extra = (uint64_t)flight_us_pair(30, 0) },
		{ .kind = FLIGHT_NETWORK_RECV,
		  .time_ns = 5,
		  .value = flight_us_pair(40, 50),
		  .extra = (uint64_t)flight_us_pair(60, 0) },
	};
	static const char *const expected[] = {
		"network_seconds_sum{rank=\"0\",local_rank=\"0\",operation=\"send_recv\","
		"backend=\"nccl\",dtype=\"unknown\"} 0.002\n",
		"network_bytes_total{rank=\"0\",local_rank=\"0\",operation=\"send_recv\","
		"backend=\"nccl\",dtype=\"unknown\"} 9000\n",
		"part=\"send_gpu\"} 0.00001\n",
		"part=\"send_peer\"} 0.00002\n",
		"part=\"send_wire\"} 0.00003\n",
		"part=\"receive_wire\"} 0.00004\n",
		"part=\"receive_flush\"} 0.00005\n",
		"part=\"receive_gpu\"} 0.00006\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		recorder_push(r.flight, 0, false, records[i]);
		metrics_worker_follow(worker, r.flight, false);
	}
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		expect(host, expected[i]);
	recorder_close(&r);
	(void)metrics_host_free(host);
}

static void kernels_of_a_window_count_by_kind(void **state)
{
	struct two two = open_two(&compat, 2);
	struct flight *f = two.recorders[0].flight;
	uint32_t gemm = recorder_string(f, "sm90_xmma_gemm_f32");
	const struct wire_state about = { .phase = PHASE_STEADY };
	uint32_t copy = recorder_string(f, "Memcpy HtoD (Pinned -> Device)");
	uint32_t calls[] = { recorder_string(f, "cudaMalloc"), recorder_string(f, "cudaMemset") };

	(void)state;
	f->gpu_lane_cnt = 1;
	for (int i = 0; i < 3; i++)
		recorder_push(f, 0, true,
			      (struct ring_record){ .kind = FLIGHT_GPU_KERNEL,
						    .time_ns = 10,
						    .value = 2000,
						    .extra = flight_gpu_extra(1, 0, gemm) });
	recorder_push(
		f, 0, true,
		(struct ring_record){ .kind = FLIGHT_GPU_MEMOP,
				      .time_ns = 10,
				      .value = 3000,
				      .extra = flight_gpu_extra(2, elements_encode(1024), copy) });
	for (size_t i = 0; i < 4; i++)
		recorder_push(
			f, 0, true,
			(struct ring_record){ .kind = FLIGHT_GPU_API,
					      .time_ns = 10,
					      .value = 500,
					      .extra = flight_gpu_extra(3, 0, calls[i / 3]) });
	metrics_worker_follow(two.workers[0], f, false); /* no window is open: not looked at */
	expect_no(two.host, "gpu_kernel");
	metrics_worker_follow(two.workers[0], f, true);
	metrics_host_tick(two.host, 2, 2 * NSEC_PER_SEC);
	expect(two.host, "gpu_kernel_seconds_sum{rank=\"0\",local_rank=\"0\",kind=\"matmul\"} "
			 "0.000006\n");
	expect(two.host, "gpu_memory_operation_bytes_total{rank=\"0\",local_rank=\"0\",kind="
			 "\"HtoD\"} 1024\n");
	expect(two.host, "XPU_TIMER_MM_KERNEL_AVG_LATENCY{pod_name=\"NOT_SET\",job_name="
			 "\"NOT_SET\",ip=\"NOT_SET\",rank=\"0\",local_rank=\"0\",dtype="
			 "\"NOT_SET\",operation=\"Matmul\",level=\"NOT_SET\"} 2\n");
	metrics_worker_state(two.workers[0], &about, 0);
	expect(two.host, "rank=\"0\",local_rank=\"0\",operation=\"cudaMalloc\",kind=\"\"} 3\n");
	expect(two.host, "operation=\"cudaMemcpyAsync\",kind=\"H2D\"} 1\n");
	expect_no(two.host, "operation=\"cudaMemset");
	close_two(&two);
}

static void accounts_give_cpu_time_and_delay(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct metrics_worker *worker = metrics_worker_new(host, 0, 0);
	struct test_recorder r = make_recorder(1);
	static const int64_t cpu_ms[] = { 500, 580, 100 }, delay_ms[] = { 50, 60, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpu_ms); i++) { /* the third: another thread */
		struct ring_record record = { .kind = FLIGHT_CPU,
					      .time_ns = (int64_t)i,
					      .value = cpu_ms[i] * MS,
					      .extra = (uint64_t)(delay_ms[i] * MS) };

		ring_push(r.flight->samples, FLIGHT_SAMPLE_CNT, &r.flight->sample_head, &record);
	}
	metrics_worker_follow(worker, r.flight, false);
	expect(host, "training_thread_cpu_seconds_total{rank=\"0\",local_rank=\"0\"} 0.08\n");
	expect(host, "run_queue_delay_seconds_sum{rank=\"0\",local_rank=\"0\"} 0.01\n");
	expect(host, "run_queue_delay_seconds_count{rank=\"0\",local_rank=\"0\"} 1\n");
	recorder_close(&r);
	(void)metrics_host_free(host);
}

static void losses_are_counted_by_reason(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct metrics_worker *worker = metrics_worker_new(host, 0, 0);
	struct test_recorder r = make_recorder(1);
	struct wire_state about = { .phase = PHASE_STEADY, .lost = 5 };

	(void)state;
	r.flight->drops.lanes = 3;
	metrics_worker_follow(worker, r.flight, false);
	r.flight->drops.lanes = 4;
	metrics_worker_follow(worker, r.flight, false);
	metrics_worker_state(worker, &about, 0);
	metrics_worker_state(worker, &about, 0);
	expect(host, "events_lost_total{rank=\"0\",local_rank=\"0\",reason=\"lanes\"} 4\n");
	expect(host, "events_lost_total{rank=\"0\",local_rank=\"0\",reason=\"marks\"} 5\n");
	expect(host, "events_lost_total{rank=\"0\",local_rank=\"0\",reason=\"torn\"} 0\n");
	recorder_close(&r);
	(void)metrics_host_free(host);
}

static void a_new_report_takes_the_place_of_the_old_one(void **state)
{
	struct metrics_host *host = metrics_host_new(&plain);
	struct wire_report report = {
		.verdict = VERDICT_ABNORMAL,
		.finding_cnt = 2,
		.findings = { { .cause = "gc", .gain_ns = 2 * MS, .rank_cnt = 1, .ranks = { 3 } },
			      { .cause = "gc", .gain_ns = 1 * MS, .rank_cnt = 20 } },
	};

	(void)state;
	metrics_host_report(host, &report, 77 * NSEC_PER_SEC);
	expect(host, "perftracker_report_findings{cause=\"gc\"} 2\n");
	expect(host, "perftracker_report_gain_seconds{cause=\"gc\"} 0.003\n");
	expect(host, "perftracker_report_accused{rank=\"3\",cause=\"gc\"} 1\n");
	expect(host, "perftracker_report_accused{rank=\"more\",cause=\"gc\"} 4\n");
	expect(host, "perftracker_report_verdict{verdict=\"abnormal\"} 1\n");
	report = (struct wire_report){ .verdict = VERDICT_HEALTHY };
	metrics_host_report(host, &report, 78 * NSEC_PER_SEC);
	expect(host, "perftracker_report_findings{cause=\"gc\"} 0\n");
	expect(host, "perftracker_report_accused{rank=\"3\",cause=\"gc\"} 0\n");
	expect(host, "perftracker_report_verdict{verdict=\"abnormal\"} 0\n");
	expect(host, "perftracker_reports_total{verdict=\"abnormal\"} 1\n");
	report.verdict = 99; /* of another release */
	metrics_host_report(host, &report, 79 * NSEC_PER_SEC);
	expect(host, "perftracker_report_timestamp_seconds 78\n");
	(void)metrics_host_free(host);
}

static void the_names_of_xpu_timer_have_its_units(void **state)
{
	struct two two = open_two(&compat, 2);

	(void)state;
	/* 10 GB in 0.1 s, all of it transfer: 800 Gbit/s, beyond the last level. 409 is, too. */
	for (int i = 0; i < 2; i++) {
		push_collective(two.recorders[i].flight, "gloo:all_reduce", 5, 100 * MS,
				INT64_C(10) << 30, 1, 2);
		push_collective(two.recorders[i].flight, "gloo:broadcast", 300 * MS, 210 * MS,
				INT64_C(10) << 30, 2, 2);
	}
	follow_both(&two);
	metrics_host_tick(two.host, 2, 2 * NSEC_PER_SEC);
#define XPU                                                                                      \
	"{pod_name=\"NOT_SET\",job_name=\"NOT_SET\",ip=\"NOT_SET\",rank=\"0\",local_rank=\"0\"," \
	"dtype=\"NOT_SET\",operation=\"AllReduce\",algorithm=\"NOT_SET\",transport="             \
	"\"IntraNode\",level=\"20\",small=\"0\"} "
	expect(two.host, "XPU_TIMER_COLL_KERNEL_P99_LATENCY" XPU "100000\n");
	expect(two.host, "XPU_TIMER_COLL_KERNEL_BANDWIDTH" XPU "858.9934592\n");
	expect(two.host, "operation=\"Broadcast\",algorithm=\"NOT_SET\",transport="
			 "\"IntraNode\",level=\"20\",small=\"0\"} 409.");
	expect_no(two.host, "level=\"21\"");
	metrics_host_tick(two.host, 2, 400 * NSEC_PER_SEC);
	expect_no(two.host, "XPU_TIMER_COLL");
	close_two(&two);
}

/* Nothing that a worker writes can be trusted. */
static void garbage_in_a_recorder_is_survived(void **state)
{
	struct metrics_host *host = metrics_host_new(&compat);
	struct metrics_worker *worker = metrics_worker_new(host, 0, 0);
	struct test_recorder r = make_recorder(2);
	struct flight *f = r.flight;
	struct ring_record record = { 0 };
	uint64_t random = 5;

	(void)state;
	metrics_host_tick(host, 2, 1);
	(void)recorder_string(f, "gloo:all_reduce");
	(void)recorder_string(f, "\xff\"\n");
	f->gpu_lane_cnt = 1;
	for (int i = 0; i < 20000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		record.kind = (uint16_t)(FLIGHT_SAMPLE + random % 24);
		record.time_ns = (int64_t)(random >> (random % 64));
		record.value = (int64_t)(random * 3 >> (random % 61));
		record.extra = random % 3 == 0 ? random % 4 : random >> 3;
		recorder_push(f, 0, i % 2 == 0, record);
		if (i % 500 == 0)
			metrics_worker_follow(worker, f, true);
	}
	expect(host, "perftracker_events_lost_total");
	recorder_close(&r);
	(void)metrics_host_free(host);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_on_the_gpu_end_together),
		cmocka_unit_test(a_collective_of_the_gpu_without_its_peer_has_no_parts),
		cmocka_unit_test(matrix_multiplications_have_time_and_speed),
		cmocka_unit_test(every_mark_counts_once),
		cmocka_unit_test(counts_go_on_when_a_rank_is_started_anew),
		cmocka_unit_test(waiting_and_transfer_are_separated),
		cmocka_unit_test(groups_of_several_hosts_have_whole_times_only),
		cmocka_unit_test(without_numbers_those_that_overlap_are_one),
		cmocka_unit_test(the_time_of_a_launch_is_not_the_time_of_a_collective),
		cmocka_unit_test(records_that_come_in_parts_are_one_collective),
		cmocka_unit_test(network_steps_are_summed_by_the_cause_of_waiting),
		cmocka_unit_test(kernels_of_a_window_count_by_kind),
		cmocka_unit_test(accounts_give_cpu_time_and_delay),
		cmocka_unit_test(losses_are_counted_by_reason),
		cmocka_unit_test(a_new_report_takes_the_place_of_the_old_one),
		cmocka_unit_test(the_names_of_xpu_timer_have_its_units),
		cmocka_unit_test(garbage_in_a_recorder_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
