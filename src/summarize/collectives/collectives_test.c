/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/collectives.h"

#include "summarize/test_summary.h"

static void kernel(uint16_t stream, const char *name, int64_t start_ns, int64_t end_ns,
		   uint32_t launch)
{
	uint32_t idx = trace_event(&trace, KIND_KERNEL, stream, name, start_ns, end_ns - start_ns);

	trace.events[idx].parent = launch;
}

static void leads_of_collectives_are_on_the_path_and_on_the_thread(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	uint16_t stream2 = trace_lane(&trace, LANE_STREAM, 0, 8);
	struct fingerprint fp;
	uint32_t launch;

	(void)state;
	event(KIND_PYTHON, "main", 0, 10000000);
	event(KIND_PYTHON, "load", 0, 2000000);
	launch = event(KIND_RUNTIME, "cudaLaunchKernel", 3000000, 3100000);
	kernel(stream, "gemm", 3100000, 6000000, EVENT_NONE);
	kernel(stream2, "ncclKernel_AllReduce", 6000000, 7000000, launch);
	launch = event(KIND_RUNTIME, "cudaLaunchKernel", 8000000, 8100000);
	kernel(stream2, "ncclKernel_AllReduce", 8100000, 9000000, launch);
	fp = summarized();
	assert_int_equal(fp.collective_cnt, 2);
	assert_int_equal(fp.collectives[0].lead_ns, 6000000);
	assert_int_equal(fp.collectives[0].host_ns, 3000000);
	assert_false(fp.collectives[0].host_gated);
	assert_int_equal(fp.collectives[0].lead_cnt, 4); /* load, main, the launch and gemm */
	assert_int_equal(fp.shares[fp.collectives[0].lead_first].ns, 2900000);
	assert_int_equal(fp.functions[fp.shares[fp.collectives[0].lead_first].function].class,
			 CLASS_COMPUTE);
	assert_int_equal(fp.shares[fp.collectives[0].host_first].ns, 2000000);
	assert_int_equal(fp.collectives[1].lead_ns, 1100000);
	assert_int_equal(fp.collectives[1].host_ns, 5000000);
	assert_true(fp.collectives[1].host_gated);
	assert_int_equal(fp.collectives[1].critical_ns, 900000);
	fingerprint_done(&fp);
}

static void a_collective_that_overlaps_the_one_before_leads_from_its_start(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	kernel(stream, "ncclKernel_AllReduce", 100, 600, EVENT_NONE);
	kernel(stream, "ncclKernel_AllReduce", 400, 900, EVENT_NONE);
	fp = summarized();
	assert_int_equal(fp.collectives[1].lead_ns, 300);
	fingerprint_done(&fp);
}

static void launches_in_another_order_than_kernels_leave_no_lead(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;
	uint32_t first, second;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	first = event(KIND_RUNTIME, "cudaLaunchKernel", 100, 110);
	second = event(KIND_RUNTIME, "cudaLaunchKernel", 200, 210);
	kernel(stream, "ncclKernel_AllReduce", 300, 400, second);
	kernel(stream, "ncclKernel_AllReduce", 500, 600, first);
	fp = summarized();
	assert_int_equal(fp.collectives[1].host_ns, 0);
	assert_int_equal(fp.collectives[1].host_cnt, 0);
	assert_int_equal(fp.collectives[1].lead_ns, 100);
	fingerprint_done(&fp);
}

static void groups_of_one_and_transfers_between_two_are_left_out(void **state)
{
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 7);
	struct fingerprint fp;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	kernel(stream, "ncclKernel_AllReduce", 100, 200, EVENT_NONE);
	trace_collective(&trace, 1, "allreduce", "0", 1, 1);
	kernel(stream, "ncclKernel_SendRecv", 300, 400, EVENT_NONE);
	trace_collective(&trace, 2, "send", "0", 4, 2);
	kernel(stream, "ncclKernel_AllReduce", 500, 600, EVENT_NONE);
	trace_collective(&trace, 3, "allreduce", "0", 4, 3);
	fp = summarized();
	assert_int_equal(fp.collective_cnt, 1);
	assert_int_equal(fp.collectives[0].seq, 3);
	assert_int_equal(fp.collectives[0].group_size, 4);
	assert_true(fp.collectives[0].group_known);
	fingerprint_done(&fp);
}

/* Kernels of an older writer: only what called them tells messages from an exchange among all. */
static void messages_without_arguments_are_known_by_the_operator_around_their_launch(void **state)
{
	uint16_t messages = trace_lane(&trace, LANE_STREAM, 0, 7);
	uint16_t stream = trace_lane(&trace, LANE_STREAM, 0, 9);
	struct fingerprint fp;
	uint32_t sends, exchanges;

	(void)state;
	event(KIND_PYTHON, "main", 0, 1000);
	event(KIND_OPERATOR, "c10d::send", 100, 140);
	sends = event(KIND_RUNTIME, "cudaLaunchKernel", 110, 130);
	kernel(messages, "ncclKernel_SendRecv", 120, 200, sends);
	event(KIND_OPERATOR, "c10d::alltoall_base_", 250, 290);
	exchanges = event(KIND_RUNTIME, "cudaLaunchKernel", 260, 280);
	kernel(stream, "ncclKernel_SendRecv", 300, 400, exchanges);
	fp = summarized();
	assert_int_equal(fp.collective_cnt, 1);
	assert_int_equal(fp.collectives[0].start_ns, 300);
	fingerprint_done(&fp);
}

/* A step of a gloo job: the operator queues the work, which runs on its own thread. */
static void gloo_step(uint16_t worker, int64_t at, int64_t seq)
{
	char step[32];

	(void)snprintf(step, sizeof(step), "ProfilerStep#%d", (int)seq);
	event(KIND_ANNOTATION, step, at, at + 1000);
	trace_collective(&trace, event(KIND_OPERATOR, "record_param_comms", at + 100, at + 110),
			 "allreduce", "dp", 2, seq);
	trace_event(&trace, KIND_ANNOTATION, worker, "gloo:all_reduce", at + 200, 300);
}

static void gloo_work_takes_the_arguments_of_its_operator(void **state)
{
	const struct summarize_options later = { .window = { .first_step = 3, .last_step = 4 } };
	uint16_t worker = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;

	(void)state;
	for (int i = 0; i < 4; i++)
		gloo_step(worker, 1000 * i, i + 1);
	fp = summarized();
	assert_int_equal(fp.collective_cnt, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fp.collectives[i].seq, i + 1);
		assert_true(fp.collectives[i].group_known);
		assert_int_equal(fp.collectives[i].dur_ns, 300);
	}
	assert_share(&fp, "gloo:all_reduce", CLASS_COMM, 1200);
	fingerprint_done(&fp);
	/* Work before the window uses its own operators, not those of the window's work. */
	fp = summarized_with(&later);
	assert_int_equal(fp.collective_cnt, 2);
	assert_int_equal(fp.collectives[0].seq, 3);
	assert_int_equal(fp.collectives[1].seq, 4);
	fingerprint_done(&fp);
}

static void collectives_beyond_the_limit_are_counted(void **state)
{
	uint16_t worker = trace_lane(&trace, LANE_THREAD, 1, 2);
	struct fingerprint fp;
	size_t cnt = COLLECTIVES_MAX + 5;

	(void)state;
	for (size_t i = 0; i < cnt; i++) {
		trace_collective(&trace,
				 event(KIND_OPERATOR, "record_param_comms", (int64_t)i * 100,
				       (int64_t)i * 100 + 10),
				 "allreduce", "dp", 2, (int64_t)i);
		trace_event(&trace, KIND_ANNOTATION, worker, "gloo:all_reduce",
			    (int64_t)i * 100 + 20, 50);
	}
	fp = summarized();
	assert_int_equal(fp.collective_cnt, COLLECTIVES_MAX);
	assert_int_equal(fp.collective_dropped, 5);
	assert_int_equal(fp.collectives[0].seq, 5);
	assert_int_equal(fp.collectives[COLLECTIVES_MAX - 1].seq, cnt - 1);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(leads_of_collectives_are_on_the_path_and_on_the_thread),
		TEST(a_collective_that_overlaps_the_one_before_leads_from_its_start),
		TEST(launches_in_another_order_than_kernels_leave_no_lead),
		TEST(groups_of_one_and_transfers_between_two_are_left_out),
		TEST(messages_without_arguments_are_known_by_the_operator_around_their_launch),
		TEST(gloo_work_takes_the_arguments_of_its_operator),
		TEST(collectives_beyond_the_limit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
