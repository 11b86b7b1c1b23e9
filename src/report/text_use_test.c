/* SPDX-License-Identifier: Apache-2.0 */
/* What the text report says of GPUs, kernels, collectives and late ranks. */
#include "report/formats.h"
#include "report/test_help.h"

#include <math.h>
#include <string.h>

static const double lateness[] = { 4, 12 }, lengths[] = { 100, 100 };

static struct report_worker worker_of(int rank)
{
	return (struct report_worker){
		.rank = rank,
		.host = "",
		.source = "",
		.window_ms = 200,
		.iteration_ms = lengths,
		.iteration_cnt = 2,
		.comm_hidden_frac = (double)NAN,
		.use = { .known = true,
			 .busy_frac = 0.5,
			 .compute_frac = 0.4,
			 .comm_frac = 0.2,
			 .comm_alone_frac = 0.1,
			 .starved_frac = 0.25,
			 .kernels = 120,
			 .short_frac = 0.75,
			 .launch_delay_us = 8.5,
			 .alloc_calls = 3,
			 .alloc_ms = 2 },
	};
}

static const struct report_total totals[] = {
	{ "gemm", KIND_KERNEL, CLASS_COMPUTE, 20, 40, 0, 3, (double)NAN },
	{ "cudaLaunchKernel", KIND_RUNTIME, CLASS_HOST, 120, 12, 7, 1, (double)NAN },
	{ "Memcpy HtoD (Pinned -> Device)", KIND_GPU_MEMOP, CLASS_MEMORY, 2, 5, 0, 3, 12.5 },
};

static const struct report_collective collectives[] = {
	{ "all_reduce", 8, 2.5e6, 4, 20, 3.25, 9.5, true },
	{ "broadcast", 0, (double)NAN, 1, 1, 0.5, (double)NAN, false },
};

/* The text of a report with these parts; the caller frees. */
static void print(enum verdict verdict, const struct report_worker *workers, size_t cnt,
		  struct str *out)
{
	const struct report_text_options options = { .width = 160 };
	struct report report = { .verdict = verdict,
				 .reason = "as it is",
				 .iteration_ms = 100,
				 .iterations = 2,
				 .workers = workers,
				 .worker_cnt = cnt,
				 .totals = totals,
				 .total_cnt = ARRAY_SIZE(totals),
				 .collectives = collectives,
				 .collective_cnt = ARRAY_SIZE(collectives) };

	assert_int_equal(report_text(&report, &options, out), 0);
}

static void a_healthy_report_says_what_gpus_and_links_did(void **state)
{
	struct report_worker workers[] = { worker_of(0), worker_of(1) };
	struct str out = { 0 };

	(void)state;
	workers[1].late_ms = lateness;
	print(VERDICT_HEALTHY, workers, 2, &out);
	assert_non_null(strstr(out.data, "no work; for 25 % the host had launched none"));
	assert_non_null(strstr(out.data, "120 per iteration, 75 % of them shorter than 10 us"));
	assert_non_null(strstr(out.data, "3 calls per iteration that allocate"));
	assert_non_null(strstr(out.data, "gemm"));
	assert_non_null(strstr(out.data, "7.00 ms of it without work on the GPU"));
	assert_non_null(strstr(out.data, "12.5 GB/s"));
	assert_non_null(strstr(out.data, "all_reduce of 8 ranks, 2.5 MB; without waiting 3.25 ms, "
					 "bus bandwidth 9.5 GB/s"));
	assert_non_null(strstr(out.data, "broadcast; at best 0.50 ms"));
	assert_non_null(strstr(out.data, "rank 1, at most 12.0 ms"));
	assert_null(strstr(out.data, "rank 0, at most"));
	str_done(&out);
}

static void beside_a_finding_only_the_use_of_gpus_is_printed(void **state)
{
	struct report_worker workers[] = { worker_of(0) };
	struct str out = { 0 };

	(void)state;
	print(VERDICT_ABNORMAL, workers, 1, &out);
	assert_non_null(strstr(out.data, "What the GPUs do"));
	assert_null(strstr(out.data, "all_reduce"));
	assert_null(strstr(out.data, "gemm"));
	str_done(&out);
}

static void without_gpus_nothing_is_said_of_them(void **state)
{
	struct report_worker workers[] = { worker_of(0) };
	struct str out = { 0 };

	(void)state;
	workers[0].use = (struct report_use){ 0 };
	print(VERDICT_HEALTHY, workers, 1, &out);
	assert_null(strstr(out.data, "What the GPUs do"));
	str_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_report_says_what_gpus_and_links_did),
		cmocka_unit_test(beside_a_finding_only_the_use_of_gpus_is_printed),
		cmocka_unit_test(without_gpus_nothing_is_said_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
