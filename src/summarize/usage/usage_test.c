/* SPDX-License-Identifier: Apache-2.0 */
/* How the GPUs of small traces were used. */
#include "base/test_alloc.h"
#include "summarize/summarize.h"
#include "summarize/test_summary.h"

#include <errno.h>

static uint16_t stream_of(int64_t tid)
{
	return trace_lane(&trace, LANE_STREAM, 0, tid);
}

/* A call on the training thread, and device work that it launches. */
static uint32_t launch(const char *call, int64_t start_ns, int64_t end_ns)
{
	return event(KIND_RUNTIME, call, start_ns, end_ns);
}

static void work(uint16_t stream, uint32_t launched_by, enum event_kind kind, const char *name,
		 int64_t start_ns, int64_t end_ns)
{
	uint32_t idx = trace_event(&trace, kind, stream, name, start_ns, end_ns - start_ns);

	trace.events[idx].parent = launched_by;
}

static void what_runs_at_once_counts_once(void **state)
{
	uint16_t a = stream_of(7), b = stream_of(8);
	struct fingerprint fp;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 1000);
	trace_event(&trace, KIND_KERNEL, a, "gemm", 100, 200);
	trace_event(&trace, KIND_KERNEL, b, "ncclDevKernel_AllReduce", 200, 300);
	trace_event(&trace, KIND_GPU_MEMOP, a, "Memcpy DtoD (Device -> Device)", 450, 100);
	trace_event(&trace, KIND_GPU_MEMOP, a, "Memset (Device)", 800, 50);
	fp = summarized();
	assert_true(fp.usage.known);
	assert_int_equal(fp.usage.busy_ns, 200 + 250 + 50);
	assert_int_equal(fp.usage.compute_ns, 200);
	assert_int_equal(fp.usage.comm_ns, 300);
	assert_int_equal(fp.usage.memory_ns, 150);
	assert_int_equal(fp.usage.comm_alone_ns, 150);
	assert_int_equal(fp.usage.memory_alone_ns, 50 + 50);
	assert_int_equal(fp.uses[0].busy_ns, 500);
	assert_int_equal(fp.usage.kernel_cnt, 2);
	assert_int_equal(fp.usage.short_cnt, 2);
	assert_int_equal(fp.usage.launch_delay_ns, -1);
	fingerprint_done(&fp);
}

/* The second kernel was launched while the first one ran; the third long after it. */
static void a_device_starves_until_the_launch_has_ended(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;
	uint32_t first, second, third;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 1000);
	first = launch("cudaLaunchKernel", 0, 10);
	second = launch("cudaLaunchKernel", 20, 30);
	work(stream, first, KIND_KERNEL, "k", 20, 100);
	work(stream, second, KIND_KERNEL, "k", 110, 200);
	third = launch("cudaLaunchKernel", 500, 540);
	work(stream, third, KIND_KERNEL, "k", 550, 1000);
	fp = summarized();
	/* 0 to 10, nothing between 100 and 110, 200 to 540 */
	assert_int_equal(fp.usage.starved_ns, 10 + 340);
	assert_int_equal(fp.usage.launched_cnt, 3);
	assert_int_equal(fp.usage.launch_delay_ns, 50);
	assert_int_equal(fp.usage.blocking_cnt, 0);
	fingerprint_done(&fp);
}

static void a_wait_costs_at_most_the_gap_behind_it(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;
	uint32_t first, second;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 900000);
	first = launch("cudaLaunchKernel", 0, 5000);
	work(stream, first, KIND_KERNEL, "k", 5000, 400000);
	launch("cudaStreamSynchronize", 300000, 401000);
	/* The device has nothing to do: this one waits for nothing. */
	launch("cudaStreamSynchronize", 402000, 403000);
	second = launch("cudaLaunchKernel", 440000, 448000);
	work(stream, second, KIND_KERNEL, "k", 450000, 900000);
	fp = summarized();
	assert_int_equal(fp.usage.sync_loss_ns, 50000);
	assert_int_equal(fp.usage.sync_cnt, 1);
	assert_int_equal(fp.usage.launch_loss_ns, 0);
	fingerprint_done(&fp);
}

static void launches_that_end_after_their_kernels_are_blocking(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 1000000);
	for (int64_t i = 0; i < 10; i++) {
		int64_t at = i * 100000;
		uint32_t call = launch("cudaLaunchKernel", at, at + 60000);

		work(stream, call, KIND_KERNEL, "k", at + 5000, at + 55000);
	}
	fp = summarized();
	assert_int_equal(fp.usage.blocking_cnt, 10);
	/* The host waits 50 us for each kernel; then the device waits 50 us, 45 us at the end. */
	assert_int_equal(fp.usage.launch_loss_ns, 9 * 50000 + 45000);
	assert_int_equal(fp.usage.sync_loss_ns, 0);
	fingerprint_done(&fp);
}

/* As where the clocks of host and device differ by 95 us. */
static void a_kernel_before_its_launch_is_not_blocking(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;
	uint32_t call;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 300000);
	work(stream, EVENT_NONE, KIND_KERNEL, "k", 5000, 10000);
	call = launch("cudaLaunchKernel", 100000, 110000);
	trace.events[call - 1].parent = call;
	fp = summarized();
	assert_int_equal(fp.usage.blocking_cnt, 0);
	assert_int_equal(fp.usage.launch_loss_ns, 0);
	fingerprint_done(&fp);
}

static const struct fp_total *total_of(const struct fingerprint *fp, const char *name)
{
	for (size_t i = 0; i < fp->total_cnt; i++) {
		if (strcmp(fp->totals[i].name, name) == 0)
			return &fp->totals[i];
	}
	fail_msg("no total %s", name);
	return NULL;
}

static void calls_and_copies_are_summed_by_name(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;
	const struct fp_total *copies, *frees;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 500);
	event(KIND_OPERATOR, "a", 0, 100);
	launch("cudaFree", 20, 60);
	trace_event(&trace, KIND_GPU_MEMOP, stream, "Memcpy HtoD (Pageable -> Device)", 50, 100);
	trace_args(&trace, (uint32_t)trace.event_cnt - 1)->bytes = 300;
	event(KIND_ANNOTATION, "ProfilerStep#2", 500, 1000);
	event(KIND_OPERATOR, "b", 500, 600);
	launch("cudaFree", 520, 550);
	trace_event(&trace, KIND_GPU_MEMOP, stream, "Memcpy HtoD (Pageable -> Device)", 900, 60);
	trace_args(&trace, (uint32_t)trace.event_cnt - 1)->bytes = 100;
	fp = summarized();
	copies = total_of(&fp, "Memcpy HtoD (Pageable -> Device)");
	frees = total_of(&fp, "cudaFree");
	assert_int_equal(copies->cnt, 2);
	assert_int_equal(copies->total_ns, 160);
	assert_int_equal(copies->longest_ns, 100);
	assert_int_equal(copies->bytes, 400);
	assert_int_equal(frees->total_ns, 70);
	assert_int_equal(frees->idle_ns, 30 + 30);
	assert_int_equal(frees->class, CLASS_MEMORY);
	assert_int_equal(fp.use_cnt, 2);
	assert_int_equal(fp.uses[0].alloc_ns, 30);
	assert_int_equal(fp.uses[1].alloc_ns, 30);
	fingerprint_done(&fp);
}

static void a_trace_without_a_device_has_no_use_of_it(void **state)
{
	struct fingerprint fp;

	(void)state;
	event(KIND_OPERATOR, "aten::mm", 0, 100);
	fp = summarized();
	assert_false(fp.usage.known);
	assert_int_equal(fp.total_cnt, 0);
	assert_int_equal(fp.use_cnt, 0);
	fingerprint_done(&fp);
}

/* The twin marks each moment of the window. */
static void unions_are_those_of_a_count_of_moments(void **state)
{
	enum { SPAN = 120, STREAMS = 3 };
	static const char *const names[] = { "gemm", "ncclKernel_AllReduce", "Memset (Device)" };
	uint64_t rng = 3;

	(void)state;
	for (int round = 0; round < 200; round++) {
		bool on[STREAMS][SPAN] = { { false } };
		int64_t busy = 0, comm_alone = 0, memory_alone = 0;
		struct fingerprint fp;
		uint16_t streams[STREAMS];

		if (round > 0) {
			trace_free(NULL);
			trace_new(NULL);
		}
		for (int64_t i = 0; i < STREAMS; i++)
			streams[i] = stream_of(7 + i);
		event(KIND_ANNOTATION, "ProfilerStep#1", 0, SPAN);
		for (int64_t t = 0; t < SPAN; t += test_below(&rng, 12)) {
			size_t what = (size_t)test_below(&rng, STREAMS);
			int64_t until = MIN(t + 1 + test_below(&rng, 20), SPAN);

			trace_event(&trace, what == 2 ? KIND_GPU_MEMOP : KIND_KERNEL, streams[what],
				    names[what], t, until - t);
			for (int64_t at = t; at < until; at++)
				on[what][at] = true;
		}
		for (int64_t t = 0; t < SPAN; t++) {
			busy += on[0][t] || on[1][t] || on[2][t];
			comm_alone += on[1][t] && !on[0][t] && !on[2][t];
			memory_alone += on[2][t] && !on[0][t] && !on[1][t];
		}
		fp = summarized();
		assert_int_equal(fp.usage.busy_ns, busy);
		assert_int_equal(fp.usage.comm_alone_ns, comm_alone);
		assert_int_equal(fp.usage.memory_alone_ns, memory_alone);
		fingerprint_done(&fp);
	}
}

static void without_memory_nothing_is_left_behind(void **state)
{
	uint16_t stream = stream_of(7);
	struct fingerprint fp;
	int error = -ENOMEM;

	(void)state;
	event(KIND_ANNOTATION, "ProfilerStep#1", 0, 1000);
	work(stream, launch("cudaLaunchKernel", 0, 10), KIND_KERNEL, "k", 20, 100);
	launch("cudaFree", 200, 300);
	for (int n = 0; error == -ENOMEM; n++) {
		struct err err;

		allocations_left = n;
		error = summarize(&trace, NULL, &fp, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_int_equal(fp.total_cnt, 3);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_runs_at_once_counts_once),
		TEST(a_device_starves_until_the_launch_has_ended),
		TEST(a_wait_costs_at_most_the_gap_behind_it),
		TEST(launches_that_end_after_their_kernels_are_blocking),
		TEST(a_kernel_before_its_launch_is_not_blocking),
		TEST(calls_and_copies_are_summed_by_name),
		TEST(a_trace_without_a_device_has_no_use_of_it),
		TEST(unions_are_those_of_a_count_of_moments),
		TEST(without_memory_nothing_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
