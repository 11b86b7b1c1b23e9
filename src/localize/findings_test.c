/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: causes, evidence, named ranks, and which findings are reported. */
#include "localize/cause.h"
#include "localize/test_fixture.h"

#include <string.h>

/* --- causes --- */

static void process_elements(size_t w, double elements)
{
	vec_foreach(f, &job.workers[w].functions)
		f->elements = f->class == CLASS_COMPUTE ? elements : -1;
}

static void other_thread_computes(void)
{
	job.workers[1].fp.host_stats.other_cpu_frac = 0.3;
	job.workers[1].fp.host_stats.other_name = "metrics.py: flush";
}

static void no_cpu(void)
{
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.host_stats.run_delay_frac = w == 1 ? 0.25 : 0.01;
	job.workers[1].fp.host_stats.thief = "stress-ng";
	job.workers[1].fp.host_stats.thief_frac = 0.9;
}

/* All lack CPUs alike; the accused rank computed for as long as its peers, or for longer. */
static void use_crowded_cpus(double more_cpu_frac)
{
	for (size_t w = 0; w < 4; w++) {
		job.workers[w].fp.host_stats.run_delay_frac = 0.5;
		job.workers[w].fp.host_stats.cpu_frac = w == 1 ? 0.3 + more_cpu_frac : 0.3;
	}
	vec_foreach(f, &job.workers[1].functions) {
		if (f->class == CLASS_HOST || f->class == CLASS_COMPUTE)
			test_utilize(f, RESOURCE_CPU_THREAD, 0.3, 0.1);
	}
}

static void an_operator_is_pushed_aside(void)
{
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.has_device = false;
	use_crowded_cpus(0);
}

static void all_are_pushed_aside(void)
{
	use_crowded_cpus(0);
}

static void it_computes_beside_others(void)
{
	use_crowded_cpus(0.1);
}

static void collections(void)
{
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.host_stats.gc_ns = w == 1 ? 170000000 : 1000;
}

static void longer_inputs(void)
{
	for (size_t w = 0; w < 4; w++)
		process_elements(w, w == 1 ? 1300 : 1000);
}

/* Taken from their computing: nobody is idle. */
static void others_copy_pinned(void)
{
	for (size_t w = 0; w < 4; w++) {
		struct fingerprint *fp = &job.workers[w].fp;
		const struct fp_function *copy;
		uint32_t frame;

		if (w == 1)
			continue;
		frame = test_frame(&job, w, FRAME_NONE, KIND_GPU_MEMOP,
				   "Memcpy HtoD (Pinned -> Device)");
		copy = test_function(&job, w, frame, CLASS_MEMORY, 0.0005);
		fp->class_ns[CLASS_IDLE] += copy->share_ns;
		fp->class_ns[CLASS_COMPUTE] -= copy->share_ns;
	}
}

static const struct {
	const char *cause;
	struct test_place place;
	void (*with)(void);
} causes[] = {
	{ "host-stall", { "forward", KIND_OPERATOR, "idle after aten::view", CLASS_IDLE }, NULL },
	{ "slow-data-loading",
	  { "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", KIND_OPERATOR,
	    "idle before aten::to", CLASS_IDLE },
	  NULL },
	{ "slow-data-loading", { NULL, KIND_PYTHON, "socket.py: recv_into", CLASS_HOST }, NULL },
	{ "cpu-bound-python", { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST }, NULL },
	{ "host-stall", { NULL, KIND_PYTHON, "<built-in function sleep>", CLASS_HOST }, NULL },
	{ "garbage-collection", { NULL, KIND_GC, "gc: collect generation 2", CLASS_HOST }, NULL },
	{ "garbage-collection",
	  { NULL, KIND_PYTHON, "tensor.py: __len__", CLASS_HOST },
	  collections },
	{ "gil-contention",
	  { "forward", KIND_OPERATOR, "idle after aten::view", CLASS_IDLE },
	  other_thread_computes },
	{ "cpu-starvation", { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST }, no_cpu },
	{ "cpu-starvation",
	  { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST },
	  all_are_pushed_aside },
	{ "cpu-starvation",
	  { NULL, KIND_OPERATOR, "aten::mm", CLASS_COMPUTE },
	  an_operator_is_pushed_aside },
	{ "cpu-bound-python",
	  { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST },
	  it_computes_beside_others },
	{ "pinned-memory-allocation", { NULL, KIND_RUNTIME, "cudaHostAlloc", CLASS_HOST }, NULL },
	{ "load-imbalance", { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE }, longer_inputs },
	{ "slow-operator", { NULL, KIND_RUNTIME, "cudaLaunchKernel", CLASS_HOST }, NULL },
	{ "gpu-slow", { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE }, NULL },
	{ "slow-copy",
	  { NULL, KIND_GPU_MEMOP, "Memcpy HtoD (Pageable -> Device)", CLASS_MEMORY },
	  others_copy_pinned },
	{ "extra-work",
	  { NULL, KIND_GPU_MEMOP, "Memcpy DtoH (Device -> Pageable)", CLASS_MEMORY },
	  others_copy_pinned },
	{ "device-memory-allocation", { NULL, KIND_RUNTIME, "cudaFree", CLASS_MEMORY }, NULL },
	{ "pinned-memory-allocation",
	  { NULL, KIND_RUNTIME, "cudaMallocHost", CLASS_MEMORY },
	  NULL },
};

static void each_pattern_of_a_late_worker_has_its_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		test_play_late(&job, &causes[i].place, 1, 30);
		if (causes[i].with != NULL)
			causes[i].with();
		report = test_localize(&job, NULL);
		if (report.finding_cnt != 1 ||
		    strcmp(report.findings[0].cause, causes[i].cause) != 0)
			print_error("%zu: expected %s, found %s\n", i, causes[i].cause,
				    report.reason);
		assert_int_equal(report.finding_cnt, 1);
		assert_string_equal(report.findings[0].cause, causes[i].cause);
		test_assert_ranks(&report.findings[0], "1");
		assert_float_equal(report.findings[0].gain_ms_per_iteration, 30, 0.1);
		report_done(&report);
		test_job_done(&job);
	}
}

/* --- evidence --- */

static bool evidence_has(const char *words)
{
	bool found = false;

	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.findings[0].evidence_cnt; i++)
		found |= strstr(report.findings[0].evidence[i], words) != NULL;
	report_done(&report);
	return found;
}

static const char *const children =
	"92 % in train.py(8): collate > train.py(3): decode > <system call read>";

static void a_wait_for_the_loaders_children_names_their_function(void **state)
{
	static const struct test_place wait = { "torch/utils/data/dataloader.py(720): __next__",
						KIND_PYTHON,
						"multiprocessing/connection.py(390): _recv",
						CLASS_HOST };

	(void)state;
	test_play_late(&job, &wait, 1, 30);
	assert_true(evidence_has("worker processes: their dataset or collate"));
	job.workers[1].fp.host_stats.awaited = children;
	assert_true(evidence_has("which spend 92 % in train.py(8): collate > train.py(3): decode"));
	report = test_localize(&job, NULL);
	assert_non_null(strstr(report.findings[0].title,
			       ", whose worker processes are in train.py(3): decode"));
	assert_null(strstr(report.findings[0].title, "system call"));
	report_done(&report);
	/* A thread that waits for them would not run, with whatever CPU; they may lack one. */
	no_cpu();
	job.workers[1].fp.host_stats.psi_cpu_frac = 0.9;
	report = test_localize(&job, NULL);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	report_done(&report);
	assert_true(evidence_has("CPU pressure of the host: some task stalled for 90 %"));
	test_job_done(&job);
	test_play_late(&job, &test_crop, 1, 30); /* it does not wait for them */
	job.workers[1].fp.host_stats.awaited = children;
	assert_false(evidence_has("worker processes"));
	test_job_done(&job);
}

/* The slow children of one rank may take the CPUs of the other's. */
static void children_that_differ_between_ranks_are_told_by_rank(void **state)
{
	static const struct test_place wait = { "torch/utils/data/dataloader.py(720): __next__",
						KIND_PYTHON,
						"multiprocessing/connection.py(390): _recv",
						CLASS_HOST };

	(void)state;
	test_job_init(&job, 2, 0, 0);
	for (size_t i = 0; i < 10; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 2; w++) {
			test_work(&job, w, &test_mm, 20);
			test_work(&job, w, &wait, 30);
		}
	}
	test_finish(&job);
	job.workers[0].fp.host_stats.awaited = "60 % in train.py(7): fetch";
	job.workers[1].fp.host_stats.awaited = children;
	assert_true(evidence_has("rank 1 waits for the DataLoader's worker processes, which spend "
				 "92 % in train.py(8): collate > train.py(3): decode > "
				 "<system call read>; those of the others are elsewhere"));
	report = test_localize(&job, NULL);
	assert_non_null(strstr(report.findings[0].title,
			       "worker processes are in train.py(3): decode (rank 1)"));
	report_done(&report);
	job.workers[0].fp.host_stats.awaited = children;
	assert_true(evidence_has("it waits for the DataLoader's worker processes, which spend 92"));
	test_job_done(&job);
}

static void a_wait_for_a_thread_or_a_child_names_its_function(void **state)
{
	static const struct test_place wait = { "train.py(40): next", KIND_PYTHON,
						"threading.py(295): wait", CLASS_HOST };

	(void)state;
	test_play_late(&job, &wait, 1, 30);
	assert_false(evidence_has("it waits for"));
	job.workers[1].fp.host_stats.awaited =
		"thread, 92 % in train.py(3): fill > train.py(9): load";
	assert_true(evidence_has("it waits for other threads of the process, which spend 92 % in "
				 "train.py(3): fill > train.py(9): load"));
	job.workers[1].fp.host_stats.awaited =
		"child, 60 % in train.py(8): act > <system call read>";
	report = test_localize(&job, NULL);
	assert_non_null(strstr(report.findings[0].title,
			       ", which waits for a child process in train.py(8): act"));
	report_done(&report);
	test_job_done(&job);
	test_play_late(&job, &test_crop, 1, 30); /* it does not wait */
	job.workers[1].fp.host_stats.awaited = "thread, 92 % in train.py(3): fill";
	assert_false(evidence_has("it waits for"));
	test_job_done(&job);
}

/* What has the time is not known where the recorder had no room for what ran. */
static void a_function_beside_lost_stacks_is_weak_evidence(void **state)
{
	static const struct {
		uint64_t lost_pct;
		size_t worker;
		enum verdict verdict;
	} cases[] = {
		{ 0, 1, VERDICT_ABNORMAL },
		{ 5, 1, VERDICT_INCONCLUSIVE },
		{ 5, 2, VERDICT_ABNORMAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fingerprint *fp;

		test_play_late(&job, &test_crop, 1, 30);
		fp = &job.workers[cases[i].worker].fp;
		fp->drops.flight_tables =
			(uint64_t)fp->window_ns / 2000000 * cases[i].lost_pct / 100;
		report = test_localize(&job, NULL);
		assert_int_equal(report.verdict, cases[i].verdict);
		assert_int_equal(report.findings[0].confidence == CONFIDENCE_LOW,
				 cases[i].verdict == VERDICT_INCONCLUSIVE);
		report_done(&report);
		assert_int_equal(evidence_has("no room for stacks"),
				 cases[i].verdict == VERDICT_INCONCLUSIVE);
		test_job_done(&job);
	}
}

static void a_slow_kernel_beside_lost_stacks_is_as_good_as_ever(void **state)
{
	static const struct test_place place = { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE };

	(void)state;
	test_play_late(&job, &place, 1, 30);
	job.workers[1].fp.drops.flight_tables = 1000000;
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	report_done(&report);
	test_job_done(&job);
}

/* The process that takes the CPU and the thread that holds the lock are named. */
static void the_evidence_names_the_process_that_takes_the_cpu(void **state)
{
	(void)state;
	test_play_late(&job, &test_crop, 1, 30);
	no_cpu();
	assert_true(evidence_has("stress-ng"));
}

static void advice_fits_all_ranks_and_allocations(void **state)
{
	(void)state;
	assert_non_null(strstr(cause_advice(CAUSE_SLOW_OPERATOR, false, ""), "this host"));
	assert_null(strstr(cause_advice(CAUSE_SLOW_OPERATOR, true, ""), "this host"));
	assert_non_null(strstr(cause_advice(CAUSE_SLOW_COPY, false, "Memcpy HtoD"), "PCIe"));
	assert_null(strstr(cause_advice(CAUSE_SLOW_COPY, false, "cudaMalloc"), "PCIe"));
	for (int i = 0; i < CAUSE_CNT; i++)
		assert_true(strlen(cause_advice((enum cause)i, true, "")) > 20);
}

static void pressure_is_evidence_beside_a_cause_it_bears_on(void **state)
{
	struct fp_host *host;

	(void)state;
	test_play_late(&job, &test_crop, 1, 30);
	no_cpu();
	host = &job.workers[1].fp.host_stats;
	host->psi_cpu_frac = 0.63;
	host->psi_io_frac = 0.8;
	assert_true(
		evidence_has("CPU pressure of the host: some task stalled for 63 % of the window"));
	assert_false(evidence_has("I/O pressure"));
	host->psi_cpu_frac = 0.09;
	assert_false(evidence_has("pressure"));
	test_job_done(&job);
	test_play_late(&job, &causes[2].place, 1, 30); /* slow data loading */
	host = &job.workers[1].fp.host_stats;
	host->psi_cpu_frac = 0.63;
	host->psi_io_frac = 0.8;
	assert_true(
		evidence_has("I/O pressure of the host: some task stalled for 80 % of the window"));
	assert_false(evidence_has("CPU pressure"));
}

static void play_slow_gpu(double throttled_frac, double clock_frac)
{
	size_t i = 0;

	while (strcmp(causes[i].cause, "gpu-slow") != 0)
		i++;
	test_play_late(&job, &causes[i].place, 1, 30);
	for (size_t w = 0; w < job.cnt; w++) {
		job.workers[w].fp.host_stats.gpu_throttled_frac = w == 1 ? throttled_frac : 0.01;
		job.workers[w].fp.host_stats.gpu_clock_frac = w == 1 ? clock_frac : 0.98;
	}
}

static void the_reason_of_a_slow_gpu_is_evidence(void **state)
{
	(void)state;
	play_slow_gpu(0.35, 0.71);
	assert_true(evidence_has(
		"a limit of power or heat slowed the GPU down for 35 % of the window (peers 1 %)"));
	assert_true(
		evidence_has("the GPU's cores ran at 71 % of their highest clock (peers 98 %)"));
	test_job_done(&job);
	play_slow_gpu(0.02, 0.97);
	assert_false(evidence_has("power or heat"));
	assert_false(evidence_has("highest clock"));
	test_job_done(&job);
	play_slow_gpu(-1, -1);
	assert_false(evidence_has("power or heat"));
	assert_false(evidence_has("highest clock"));
}

/* --- named ranks --- */

/* Six iterations in which worker w of cnt spends ms[w] in a function of Python. */
static void play_crop(const double ms[], size_t cnt)
{
	test_job_init(&job, cnt, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < cnt; w++) {
			test_work(&job, w, &test_crop, ms[w]);
			test_work(&job, w, &test_mm, 75);
		}
		test_meet(&job, 0, 0, cnt, 5);
	}
	test_finish(&job);
}

static void a_place_slow_on_all_workers_is_one_finding(void **state)
{
	static const double ms[] = { 20, 20, 20, 20 };

	(void)state;
	play_crop(ms, ARRAY_SIZE(ms));
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-function-everywhere");
	assert_true(report.findings[0].all_workers);
	assert_float_equal(report.findings[0].gain_pct, 19, 0.01);
}

/* Rank 4 is nearly as slow as rank 2, but never the last; rank 1 is not worth a word. */
static void a_worker_as_slow_but_never_last_is_named_too(void **state)
{
	static const double ms[] = { 2, 6, 30, 2, 27, 2 };

	(void)state;
	play_crop(ms, ARRAY_SIZE(ms));
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].ranks[1], 4);
}

/* Ranks 2 and 3 share a host whose CPUs others use; only rank 2 is ever the last. */
static void workers_of_a_starved_host_are_named_together(void **state)
{
	(void)state;
	test_play_late(&job, &test_crop, 2, 30);
	for (size_t w = 0; w < 4; w++) {
		job.workers[w].fp.host = w < 2 ? "healthy" : "starved";
		job.workers[w].fp.host_stats.run_delay_frac =
			w < 2 ? 0.001 : 0.3 - 0.01 * (double)w;
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "cpu-starvation");
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].ranks[1], 3);
	report_done(&report);
	job.workers[3].fp.host_stats.run_delay_frac = 0.002;
	report = test_localize(&job, NULL);
	assert_int_equal(report.findings[0].rank_cnt, 1);
}

/* Once in six iterations, in pieces, everywhere. */
static void play_occasion(const struct test_place *place)
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			if (i == 3)
				for (int chunk = 0; chunk < 12; chunk++)
					test_work(&job, w, place, 10);
			test_work(&job, w, &test_mm, 75);
		}
		test_meet(&job, 0, 0, 4, 5);
	}
	test_finish(&job);
}

static void a_checkpoint_of_all_is_no_finding_but_a_collection_is(void **state)
{
	static const struct test_place gc = { NULL, KIND_GC, "gc (generation 2)", CLASS_HOST };

	(void)state;
	play_occasion(&test_crop);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	report_done(&report);
	test_job_done(&job);
	play_occasion(&gc);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
}

/* Four ranks that communicate in 60 % of their time. */
static void communicate(void)
{
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 40);
		test_meet(&job, 0, 0, 4, 60);
	}
	test_finish(&job);
}

static void a_collective_that_is_slow_for_all_accuses_no_worker(void **state)
{
	(void)state;
	communicate();
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-collective");
	assert_true(report.findings[0].all_workers);
	assert_float_equal(report.findings[0].gain_pct, 30, 0.01);
}

static void a_collective_of_hosts_without_cpus_is_weak_evidence(void **state)
{
	(void)state;
	communicate();
	for (size_t w = 0; w < 4; w++) {
		job.workers[w].fp.has_device = false;
		job.workers[w].fp.host_stats.psi_cpu_frac = w == 2 ? 0.8 : 0.2;
	}
	assert_true(evidence_has("CPU pressure of the host: some task stalled for 80 %"));
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
	report_done(&report);
	test_job_done(&job);
	communicate();
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.host_stats.psi_cpu_frac = 0.8;
	report = test_localize(&job, NULL); /* a device communicates */
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
}

/* --- which findings --- */

static void findings_come_by_what_their_repair_gives_back(void **state)
{
	(void)state;
	test_job_init(&job, 6, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 6; w++)
			test_work(&job, w, &test_mm, 48);
		test_work(&job, 1, &test_crop, 12);
		test_meet(&job, 0, 0, 6, 2);
		for (size_t w = 0; w < 6; w++)
			test_work(&job, w, &test_mm, 48);
		test_work(&job, 4, &test_nap, 25);
		test_meet(&job, 0, 0, 6, 2);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(&report.findings[0], "4");
	test_assert_ranks(&report.findings[1], "1");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 25, 0.1);
	assert_float_equal(report.findings[1].gain_ms_per_iteration, 12, 0.1);
}

/* The same stall in the forward and in the backward pass. */
static void one_fault_in_two_places_is_one_finding(void **state)
{
	static const struct test_place backward = { "backward", KIND_OPERATOR,
						    "idle after aten::add", CLASS_IDLE };

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 96);
		test_work(&job, 3, &test_nap, 10);
		test_work(&job, 3, &backward, 11);
		test_meet(&job, 0, 0, 4, 4);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 21, 0.1);
}

static void findings_below_min_gain_are_left_out(void **state)
{
	static const struct {
		double pause_ms, min_gain_pct;
		bool reported;
	} cases[] = { { 0.5, 1, false }, { 3, 1, true }, { 3, 5, false }, { 0.5, 0.1, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct localize_options options = localize_defaults();

		test_play_late(&job, &test_nap, 2, cases[i].pause_ms);
		options.min_gain_pct = cases[i].min_gain_pct;
		report = test_localize(&job, &options);
		if ((report.finding_cnt == 1) != cases[i].reported)
			print_error("case %zu: %s\n", i, report.reason);
		assert_int_equal(report.finding_cnt, cases[i].reported ? 1 : 0);
		assert_int_equal(report.verdict,
				 cases[i].reported ? VERDICT_ABNORMAL : VERDICT_HEALTHY);
		report_done(&report);
		test_job_done(&job);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_pattern_of_a_late_worker_has_its_cause),
		TEST(a_wait_for_the_loaders_children_names_their_function),
		TEST(children_that_differ_between_ranks_are_told_by_rank),
		TEST(a_wait_for_a_thread_or_a_child_names_its_function),
		TEST(a_function_beside_lost_stacks_is_weak_evidence),
		TEST(a_slow_kernel_beside_lost_stacks_is_as_good_as_ever),
		TEST(the_evidence_names_the_process_that_takes_the_cpu),
		TEST(advice_fits_all_ranks_and_allocations),
		TEST(pressure_is_evidence_beside_a_cause_it_bears_on),
		TEST(the_reason_of_a_slow_gpu_is_evidence),
		TEST(a_place_slow_on_all_workers_is_one_finding),
		TEST(a_worker_as_slow_but_never_last_is_named_too),
		TEST(workers_of_a_starved_host_are_named_together),
		TEST(a_checkpoint_of_all_is_no_finding_but_a_collection_is),
		TEST(a_collective_that_is_slow_for_all_accuses_no_worker),
		TEST(a_collective_of_hosts_without_cpus_is_weak_evidence),
		TEST(findings_come_by_what_their_repair_gives_back),
		TEST(one_fault_in_two_places_is_one_finding),
		TEST(findings_below_min_gain_are_left_out),
	};

	return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
