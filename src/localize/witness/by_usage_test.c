/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps the GPUs of all workers from computing. */
#include "localize/test_fixture.h"

#include <math.h>
#include <string.h>

#define TEST(f) cmocka_unit_test_teardown(f, done)

#define WINDOW_MS 600.0
#define ITERATIONS 6

static const struct test_place launches = { NULL, KIND_OPERATOR, "aten::gelu", CLASS_HOST };

static int64_t ns_of_ms(double ms)
{
	return (int64_t)(ms * 1e6);
}

/* Gives the workers GPUs that compute for half of the window and are otherwise idle. */
static void add_gpus(size_t workers)
{
	for (size_t w = 0; w < workers; w++) {
		struct fingerprint *fp = &job.workers[w].fp;

		fp->has_device = true;
		fp->usage = (struct fp_usage){ .known = true,
					       .busy_ns = ns_of_ms(WINDOW_MS / 2),
					       .compute_ns = ns_of_ms(WINDOW_MS / 2),
					       .launch_delay_ns = 9000,
					       .kernel_cnt = 1200,
					       .launched_cnt = 1200,
					       .short_cnt = 300 };
		fp->uses = arena_calloc(&fp->arena, ITERATIONS, sizeof(*fp->uses));
		fp->totals = arena_calloc(&fp->arena, 4, sizeof(*fp->totals));
		assert_non_null(fp->uses);
		assert_non_null(fp->totals);
		fp->use_cnt = ITERATIONS;
	}
}

static void use_gpus(size_t workers)
{
	test_job_init(&job, workers, WINDOW_MS, ITERATIONS);
	add_gpus(workers);
}

static void add_total(size_t w, const char *name, enum event_kind kind, uint64_t cnt, double ms)
{
	struct fingerprint *fp = &job.workers[w].fp;

	fp->totals[fp->total_cnt++] = (struct fp_total){
		.name = name,
		.kind = (uint8_t)kind,
		.class = CLASS_MEMORY,
		.cnt = cnt,
		.total_ns = ns_of_ms(ms),
		.idle_ns = kind == KIND_RUNTIME ? ns_of_ms(ms) : 0,
		.bytes = kind == KIND_GPU_MEMOP ? 1000000 * (int64_t)ms : -1,
	};
}

/* ms of each iteration from `first` on. */
static void copy_alone(size_t w, size_t first, size_t end, double ms)
{
	struct fingerprint *fp = &job.workers[w].fp;

	for (size_t i = first; i < end; i++) {
		fp->uses[i].memory_alone_ns = ns_of_ms(ms);
		fp->usage.memory_alone_ns += ns_of_ms(ms);
	}
	add_total(w, "Memcpy HtoD (Pageable -> Device)", KIND_GPU_MEMOP, 12,
		  ms * (double)(end - first));
}

static void allocate(size_t w, const char *call, size_t first, size_t end, double ms)
{
	for (size_t i = first; i < end; i++)
		job.workers[w].fp.uses[i].alloc_ns += ns_of_ms(ms);
	add_total(w, call, KIND_RUNTIME, 10, ms * (double)(end - first));
}

static void starve(size_t w, size_t first, double ms)
{
	struct fingerprint *fp = &job.workers[w].fp;

	for (size_t i = first; i < ITERATIONS; i++) {
		fp->uses[i].starved_ns = ns_of_ms(ms);
		fp->usage.starved_ns += ns_of_ms(ms);
	}
	fp->usage.busy_ns = ns_of_ms(WINDOW_MS) - fp->usage.starved_ns;
}

static void ask(void)
{
	report = test_localize(&job, NULL);
}

static bool has_line(const struct finding *f, const char *words)
{
	for (size_t i = 0; i < f->evidence_cnt; i++) {
		if (strstr(f->evidence[i], words) != NULL)
			return true;
	}
	return false;
}

/*
 * Four ranks launch for 80 of 100 ms; the device of rank 0, which comes last, has no work meanwhile, those of the
 * others spin in a collective. more: factor on what the host of rank 0 does.
 */
static void spin(double more)
{
	test_job_init(&job, 4, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, 10);
		test_work(&job, 0, &launches, 80);
		test_meet(&job, 0, 0, 4, 5);
	}
	test_finish(&job);
	add_gpus(4);
	for (size_t w = 0; w < 4; w++) {
		struct fingerprint *fp = &job.workers[w].fp;
		struct fp_function *f = NULL;

		for (size_t i = 0; i < fp->function_cnt; i++) {
			if (fp->functions[i].class == CLASS_HOST)
				f = &fp->functions[i];
		}
		assert_int_equal(f != NULL, w == 0);
		if (f == NULL)
			f = test_function(
				&job, w,
				test_frame(&job, w, FRAME_NONE, KIND_OPERATOR, "aten::gelu"),
				CLASS_HOST, 0.001);
		f->thread_ns = ns_of_ms(80 * ITERATIONS * (w == 0 ? more : 1));
		starve(w, 0, w == 0 ? 80 : 1);
	}
}

static void copies_of_the_only_rank_are_a_finding_with_their_rate(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(1);
	copy_alone(0, 0, ITERATIONS, 40);
	ask();
	f = test_find(&report, "copies");
	assert_non_null(f);
	assert_string_equal(f->id, "PT-206");
	assert_string_equal(f->name, "Memcpy HtoD (Pageable -> Device)");
	assert_true(fabs(f->gain_pct - 40) < 0.1);
	assert_true(f->gain_at_most);
	assert_true(has_line(f, "2 times per iteration, 40 ms in all, at 1 GB/s"));
	assert_non_null(strstr(f->advice, "pin_memory"));
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
}

static void advice_for_pinned_copies_is_not_to_pin(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(1);
	copy_alone(0, 0, ITERATIONS, 40);
	job.workers[0].fp.totals[0].name = "Memcpy HtoD (Pinned -> Device)";
	ask();
	f = test_find(&report, "copies");
	assert_non_null(f);
	assert_null(strstr(f->advice, "pin"));
}

static void a_checkpoint_s_copies_are_no_property_of_the_job(void **state)
{
	(void)state;
	use_gpus(2);
	copy_alone(0, 3, 4, 95);
	copy_alone(1, 3, 4, 95);
	ask();
	assert_int_equal(report.finding_cnt, 0);
}

static void copies_of_one_rank_of_two_are_not_all_ranks(void **state)
{
	(void)state;
	use_gpus(2);
	copy_alone(0, 0, ITERATIONS, 40);
	ask();
	assert_null(test_find(&report, "copies"));
}

static void allocations_in_every_iteration_are_a_finding(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(2);
	for (size_t w = 0; w < 2; w++) {
		allocate(w, "cudaFree", 0, ITERATIONS, 15);
		allocate(w, "cudaMalloc", 0, ITERATIONS, 10);
	}
	ask();
	f = test_find(&report, "device-memory-allocation");
	assert_non_null(f);
	assert_string_equal(f->name, "cudaFree, cudaMalloc");
	assert_true(f->all_workers);
	assert_true(fabs(f->gain_ms_per_iteration - 25) < 0.1);
	assert_null(strstr(f->advice, "PCIe"));
	assert_true(has_line(f, "the GPU had no work for 15 ms of them"));
}

static void allocations_of_the_first_iterations_are_no_fault(void **state)
{
	(void)state;
	use_gpus(2);
	for (size_t w = 0; w < 2; w++) {
		allocate(w, "cudaMalloc", 0, 1, 90);
		allocate(w, "cudaFree", 1, 2, 60);
	}
	ask();
	assert_int_equal(report.finding_cnt, 0);
}

static void pinned_allocations_have_their_own_cause(void **state)
{
	(void)state;
	use_gpus(1);
	allocate(0, "cudaHostAlloc", 0, ITERATIONS, 20);
	ask();
	assert_non_null(test_find(&report, "pinned-memory-allocation"));
	assert_null(test_find(&report, "device-memory-allocation"));
}

static void launches_that_wait_need_most_kernels(void **state)
{
	(void)state;
	use_gpus(1);
	job.workers[0].fp.usage.launch_loss_ns = ns_of_ms(180);
	for (size_t i = 0; i < ITERATIONS; i++)
		job.workers[0].fp.uses[i].launch_loss_ns = ns_of_ms(30);
	job.workers[0].fp.usage.blocking_cnt = 250;
	ask();
	assert_int_equal(report.finding_cnt, 0);
	report_done(&report);
	job.workers[0].fp.usage.blocking_cnt = 1190;
	ask();
	assert_non_null(test_find(&report, "synchronous-launches"));
}

static void synchronizations_are_named_by_their_call(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(1);
	job.workers[0].fp.usage.sync_loss_ns = ns_of_ms(120);
	job.workers[0].fp.usage.sync_cnt = 60;
	for (size_t i = 0; i < ITERATIONS; i++)
		job.workers[0].fp.uses[i].sync_loss_ns = ns_of_ms(20);
	add_total(0, "cudaStreamSynchronize", KIND_RUNTIME, 60, 200);
	ask();
	f = test_find(&report, "device-synchronization");
	assert_non_null(f);
	assert_string_equal(f->name, "cudaStreamSynchronize");
	assert_true(fabs(f->gain_pct - 20) < 0.1);
}

/* The host reads the loss once, and then does something else. */
static void one_wait_of_an_iteration_is_not_the_fault(void **state)
{
	(void)state;
	use_gpus(1);
	job.workers[0].fp.usage.sync_loss_ns = ns_of_ms(120);
	job.workers[0].fp.usage.sync_cnt = ITERATIONS;
	for (size_t i = 0; i < ITERATIONS; i++)
		job.workers[0].fp.uses[i].sync_loss_ns = ns_of_ms(20);
	ask();
	assert_null(test_find(&report, "device-synchronization"));
}

static void gpus_that_wait_for_their_host_are_a_finding_and_no_note(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(2);
	starve(0, 0, 80);
	starve(1, 0, 90);
	ask();
	f = test_find(&report, "host-bound");
	assert_non_null(f);
	assert_true(f->all_workers);
	assert_true(fabs(f->gain_pct - 85) < 0.1);
	assert_true(has_line(f, "200 kernels per iteration, 25 % of them shorter than 10 us"));
	for (size_t i = 0; i < report.note_cnt; i++)
		assert_null(strstr(report.notes[i], "bound by its host"));
}

/* Rank 3 is never the last and waits for the others, by turns, which wait for their hosts. */
static void play_faster(double its_starved_ms)
{
	test_job_init(&job, 4, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &test_mm, w == i % 3 ? 98 : 68);
		test_meet(&job, 0, 0, 4, 2);
	}
	test_finish(&job);
	add_gpus(4);
	for (size_t w = 0; w < 4; w++)
		starve(w, 0, w == 3 ? its_starved_ms : 90);
	ask();
}

static void a_gpu_that_waits_for_ranks_that_wait_for_their_hosts_is_one_of_them(void **state)
{
	(void)state;
	play_faster(30);
	assert_non_null(test_find(&report, "host-bound"));
	assert_true(test_find(&report, "host-bound")->all_workers);
	assert_int_equal(done(state), 0);
	play_faster(10); /* its host is another matter */
	assert_null(test_find(&report, "host-bound"));
}

static void some_waiting_for_the_host_is_a_note(void **state)
{
	bool noted = false;

	(void)state;
	use_gpus(2);
	starve(0, 0, 40);
	starve(1, 0, 40);
	ask();
	assert_int_equal(report.finding_cnt, 0);
	for (size_t i = 0; i < report.note_cnt; i++)
		noted |= strstr(report.notes[i], "bound by its host") != NULL;
	assert_true(noted);
}

static void a_job_that_lacks_ranks_is_not_all_ranks(void **state)
{
	const struct finding *f;

	(void)state;
	use_gpus(2);
	starve(0, 0, 80);
	starve(1, 0, 80);
	job.workers[0].fp.world_size = 4;
	ask();
	f = test_find(&report, "host-bound");
	assert_non_null(f);
	assert_non_null(strstr(f->title, "all analyzed ranks"));
}

/* A running job shows how fast it can be. */
static void a_live_job_is_not_accused_of_what_it_always_has(void **state)
{
	struct localize_options options = localize_defaults();

	(void)state;
	use_gpus(2);
	starve(0, 0, 80);
	starve(1, 0, 80);
	options.trigger = (struct report_trigger){ .present = true, .kind = "checkup" };
	report = test_localize(&job, &options);
	assert_int_equal(report.finding_cnt, 0);
}

/* Which rank comes last is chance where all hosts do as much. */
static void hosts_that_are_all_slow_are_named_though_collectives_spin(void **state)
{
	const struct finding *f;

	(void)state;
	spin(1);
	ask();
	assert_int_equal(report.finding_cnt, 1);
	f = test_find(&report, "host-bound");
	assert_non_null(f);
	assert_true(f->all_workers);
	assert_true(has_line(f, "that of rank 0, for which they wait"));
}

static void a_host_that_does_more_than_others_is_not_all_hosts(void **state)
{
	(void)state;
	spin(4);
	ask();
	assert_null(test_find(&report, "host-bound"));
	assert_true(report.finding_cnt > 0);
	test_assert_ranks(&report.findings[0], "0");
}

/* Two ranks communicate for 60 of 100 ms, with links at this utilization, and their GPUs starve. */
static void communicate_and_starve(double starved_ms, double link_frac)
{
	test_job_init(&job, 2, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 2; w++) {
			test_work(&job, w, &launches, starved_ms);
			test_work(&job, w, &test_mm, 40 - starved_ms);
		}
		test_meet(&job, 0, 0, 2, 60);
	}
	test_finish(&job);
	add_gpus(2);
	for (size_t w = 0; w < 2; w++) {
		job.workers[w].fp.usage.comm_ns = job.workers[w].fp.usage.comm_alone_ns =
			ns_of_ms(60 * ITERATIONS);
		job.workers[w].fp.resources |= 1u << RESOURCE_NVLINK_TX;
		starve(w, 0, starved_ms);
		vec_foreach(f, &job.workers[w].functions) {
			if (f->class == CLASS_COMM)
				test_utilize(f, RESOURCE_NVLINK_TX, link_frac, 0.1);
		}
	}
	report = test_localize(&job, NULL);
}

/* Half of what communication leaves is enough, and links that are as fast as links get come after it. */
static void hosts_are_slow_beside_communication_by_design(void **state)
{
	(void)state;
	communicate_and_starve(30, 0.8);
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 2);
	assert_string_equal(report.findings[0].cause, "host-bound");
	assert_string_equal(report.findings[1].cause, "slow-collective");
	assert_int_equal(report.findings[1].confidence, CONFIDENCE_LOW);
	(void)done(NULL);

	/* Links that carry less may be slow. */
	communicate_and_starve(30, 0.4);
	assert_int_equal(report.finding_cnt, 2);
	assert_string_equal(report.findings[0].cause, "slow-collective");
	(void)done(NULL);

	communicate_and_starve(15, 0.8);
	assert_null(test_find(&report, "host-bound"));
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hosts_that_are_all_slow_are_named_though_collectives_spin),
		TEST(a_host_that_does_more_than_others_is_not_all_hosts),
		TEST(copies_of_the_only_rank_are_a_finding_with_their_rate),
		TEST(advice_for_pinned_copies_is_not_to_pin),
		TEST(a_checkpoint_s_copies_are_no_property_of_the_job),
		TEST(copies_of_one_rank_of_two_are_not_all_ranks),
		TEST(allocations_in_every_iteration_are_a_finding),
		TEST(allocations_of_the_first_iterations_are_no_fault),
		TEST(pinned_allocations_have_their_own_cause),
		TEST(launches_that_wait_need_most_kernels),
		TEST(synchronizations_are_named_by_their_call),
		TEST(one_wait_of_an_iteration_is_not_the_fault),
		TEST(gpus_that_wait_for_their_host_are_a_finding_and_no_note),
		TEST(a_gpu_that_waits_for_ranks_that_wait_for_their_hosts_is_one_of_them),
		TEST(some_waiting_for_the_host_is_a_note),
		TEST(a_job_that_lacks_ranks_is_not_all_ranks),
		TEST(a_live_job_is_not_accused_of_what_it_always_has),
		TEST(hosts_are_slow_beside_communication_by_design),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
