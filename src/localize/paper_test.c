/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's own cases: PerfTracker figures 3-5, 7, 13 and 15. */
#include "base/test_random.h"
#include "localize/test_job.h"

#include <math.h>

static struct fp_function *add(struct test_job *job, size_t w, enum event_kind kind,
			       const char *name, enum event_class class, double beta)
{
	return test_function(job, w, test_frame(job, w, FRAME_NONE, kind, name), class, beta);
}

/* value, a few percent up or down. */
static double about(uint64_t *state, double value)
{
	return value * (0.97 + 0.06 * test_uniform(state));
}

/* Figure 7: iterations of 2 s on 32 workers. */
static void make_figure_7(struct test_job *job)
{
	test_job_init(job, 32, 20000, 10);
	for (size_t w = 0; w < 32; w++) {
		uint32_t load =
			test_frame(job, w, FRAME_NONE, KIND_PYTHON, "dataloader.py: __next__");
		uint32_t recv = test_frame(job, w, load, KIND_PYTHON, "socket.py: recv_into");
		struct fp_function *f = test_function(job, w, recv, CLASS_HOST, 0.25);

		test_utilize(f, RESOURCE_CPU_THREAD, 0.02, 0.01);
		f = add(job, w, KIND_KERNEL, "GEMM", CLASS_COMPUTE, w < 4 ? 0.15 : 0.05);
		test_utilize(f, RESOURCE_SM_ACTIVE, w < 4 ? 0.33 : 0.99, 0.05);
		f = add(job, w, KIND_KERNEL, "Ring Allreduce", CLASS_COMM, 0.1);
		test_utilize(f, RESOURCE_PCIE_TX, w == 7 ? 0.37 : 0.75, 0.05);
		add(job, w, KIND_KERNEL, "attention", CLASS_COMPUTE, 0.3);
	}
}

static void the_three_rows_of_figure_7_are_found(void **state)
{
	struct test_job job;
	struct report report;
	const struct finding *f;

	(void)state;
	make_figure_7(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 3);
	f = test_find(&report, "slow-data-loading");
	assert_non_null(f);
	assert_ptr_equal(f, &report.findings[0]);
	assert_true(f->all_workers);
	assert_string_equal(f->name, "socket.py: recv_into");
	assert_float_equal(f->time_ms_per_iteration, 500, 0.01);
	assert_float_equal(f->delta_ms_per_iteration, 480, 0.01);
	assert_int_equal(f->beta.reference_kind, REFERENCE_EXPECTED);
	f = test_find(&report, "gpu-slow");
	test_assert_ranks(f, "0-3");
	assert_float_equal(f->time_ms_per_iteration, 300, 0.01);
	assert_float_equal(f->mu.value, 0.33, 1e-9);
	assert_float_equal(f->mu.reference, 0.99, 1e-9);
	f = test_find(&report, "slow-link");
	test_assert_ranks(f, "7");
	assert_float_equal(f->mu.value, 0.37, 1e-9);
	assert_float_equal(f->mu.reference, 0.75, 1e-9);
	assert_string_equal(f->resource, "pcie_tx");
	report_done(&report);
	test_job_done(&job);
}

/* Figures 3-5: two rings of 16; in the second, worker 21 has the slow link. */
static void of_a_ring_with_one_slow_link_only_its_owner_is_accused(void **state)
{
	struct test_job job;
	struct report report;
	uint64_t seed = 5;

	(void)state;
	test_job_init(&job, 32, 20000, 10);
	for (size_t w = 0; w < 32; w++) {
		struct fp_function *f = add(&job, w, KIND_KERNEL, "AllReduce_RING", CLASS_COMM,
					    w < 16 ? 0.12 : 0.29);

		test_utilize(f, RESOURCE_NIC_TX, about(&seed, w < 16 ? 0.9 : 0.4),
			     about(&seed, w < 16 || w == 21 ? 0.04 : 0.4));
		add(&job, w, KIND_KERNEL, "GEMM", CLASS_COMPUTE, 0.6);
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-link");
	test_assert_ranks(&report.findings[0], "21");
	report_done(&report);
	test_job_done(&job);
}

static bool is_throttled(size_t w)
{
	return w % 8 == 3 && w < 2400;
}

/* Figure 13: 2,560 workers, 300 throttled GPUs, and 3 without NVLink in a group of 48. */
static void make_figure_13(struct test_job *job)
{
	uint64_t seed = 13;

	test_job_init(job, 2560, 20000, 10);
	for (size_t w = 0; w < 2560; w++) {
		bool throttled = is_throttled(w), slow = w >= 2496 && w < 2544;
		bool pcie = w == 2500 || w == 2507 || w == 2533;
		struct fp_function *f = add(job, w, KIND_KERNEL, "GEMM", CLASS_COMPUTE,
					    about(&seed, throttled ? 0.6 : 0.35));

		test_utilize(f, RESOURCE_SM_ACTIVE, about(&seed, throttled ? 0.4 : 0.95), 0.05);
		f = add(job, w, KIND_KERNEL, "AllGather_RING", CLASS_COMM,
			about(&seed, slow ? 0.28 : 0.1));
		test_utilize(f, RESOURCE_PCIE_TX, about(&seed, pcie ? 0.85 : 0.1), 0.02);
	}
}

static void figure_13_accuses_the_throttled_and_the_three_without_nvlink(void **state)
{
	struct test_job job;
	struct localize_options options = localize_defaults();

	(void)state;
	make_figure_13(&job);
	for (options.seed = 1; options.seed <= 3; options.seed++) {
		struct report report = test_localize(&job, &options);
		const struct finding *f = test_find(&report, "gpu-slow");

		assert_int_equal(report.finding_cnt, 2);
		assert_non_null(f);
		assert_int_equal(f->rank_cnt, 300);
		for (size_t i = 0; i < f->rank_cnt; i++)
			assert_true(is_throttled((size_t)f->ranks[i]));
		f = test_find(&report, "nvlink-fallback");
		test_assert_ranks(f, "2500,2507,2533");
		report_done(&report);
	}
	test_job_done(&job);
}

#define F15_WORKERS 3072
#define F15_PLACES 6

/* Figure 15: recv_into on many workers; collections that strike anybody, anywhere. */
static void make_figure_15(struct test_job *job)
{
	static const char *const places[F15_PLACES] = {
		"grad_mode.py: __init__", "module.py: __setattr__", "tensor.py: __len__",
		"random.py: fork_rng",	  "function.py: forward",   "optim.py: _get_value",
	};
	uint64_t seed = 15;

	test_job_init(job, F15_WORKERS, 20000, 10);
	for (size_t w = 0; w < F15_WORKERS; w++) {
		bool reads = test_uniform(&seed) < 0.7;
		uint32_t load =
			test_frame(job, w, FRAME_NONE, KIND_PYTHON, "dataloader.py: __next__");
		uint32_t recv = test_frame(job, w, load, KIND_PYTHON, "socket.py: recv_into");

		test_function(job, w, recv, CLASS_HOST, reads ? about(&seed, 0.12) : 0.002);
		add(job, w, KIND_KERNEL, "GEMM", CLASS_COMPUTE, about(&seed, 0.5));
		for (size_t p = 0; p < F15_PLACES; p++)
			add(job, w, KIND_PYTHON, places[p], CLASS_HOST,
			    w % 97 == 11 * p ? 0.06 : 0.001);
	}
}

static void figure_15_finds_slow_reads_and_one_garbage_collection(void **state)
{
	struct test_job job;
	struct report report;
	const struct finding *f;
	size_t collectors = 0;

	(void)state;
	make_figure_15(&job);
	report = test_localize(&job, NULL);
	f = test_find(&report, "slow-data-loading");
	assert_non_null(f);
	assert_in_range(f->rank_cnt, F15_WORKERS * 6 / 10, F15_WORKERS * 8 / 10);
	assert_string_equal(f->name, "socket.py: recv_into");
	f = test_find(&report, "garbage-collection");
	assert_non_null(f);
	for (size_t w = 0; w < F15_WORKERS; w++)
		collectors += w % 97 % 11 == 0 && w % 97 < 11 * F15_PLACES;
	assert_int_equal(f->rank_cnt, collectors);
	assert_int_equal(report.finding_cnt, 2);
	report_done(&report);
	test_job_done(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_rows_of_figure_7_are_found),
		cmocka_unit_test(of_a_ring_with_one_slow_link_only_its_owner_is_accused),
		cmocka_unit_test(figure_13_accuses_the_throttled_and_the_three_without_nvlink),
		cmocka_unit_test(figure_15_finds_slow_reads_and_one_garbage_collection),
	};

	return cmocka_run_group_tests_name("paper", tests, NULL, NULL);
}
