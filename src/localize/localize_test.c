/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/localize.h"

#include "base/test_alloc.h"
#include "localize/peers.h"
#include "localize/test_job.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct test_place mm = { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE };
static const struct test_place nap = { "forward", KIND_OPERATOR, "idle after aten::view",
				       CLASS_IDLE };
static const struct test_place crop = { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST };

/* Six iterations of 100 ms on 4 workers; worker `late` spends ms more in a place. */
static void play(struct test_job *job, const struct test_place *place, size_t late, double ms)
{
	test_job_init(job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(job);
		for (size_t w = 0; w < 4; w++) {
			test_work(job, w, &mm, 98);
			if (w == late)
				test_work(job, w, place, ms);
		}
		test_meet(job, 0, 0, 4, 2);
	}
	test_finish(job);
}

static void process_elements(struct test_job *job, size_t w, double elements)
{
	vec_foreach(f, &job->workers[w].functions)
		f->elements = f->class == CLASS_COMPUTE ? elements : -1;
}

/* --- causes --- */

static void other_thread_computes(struct test_job *job)
{
	job->workers[1].fp.host_stats.other_cpu_frac = 0.3;
	job->workers[1].fp.host_stats.other_name = "metrics.py: flush";
}

static void no_cpu(struct test_job *job)
{
	for (size_t w = 0; w < 4; w++)
		job->workers[w].fp.host_stats.run_delay_frac = w == 1 ? 0.25 : 0.01;
	job->workers[1].fp.host_stats.thief = "stress-ng";
	job->workers[1].fp.host_stats.thief_frac = 0.9;
}

static void collections(struct test_job *job)
{
	for (size_t w = 0; w < 4; w++)
		job->workers[w].fp.host_stats.gc_ns = w == 1 ? 170000000 : 1000;
}

static void longer_inputs(struct test_job *job)
{
	for (size_t w = 0; w < 4; w++)
		process_elements(job, w, w == 1 ? 1300 : 1000);
}

static const struct {
	const char *cause;
	struct test_place place;
	void (*with)(struct test_job *job);
} causes[] = {
	{ "host-stall", { "forward", KIND_OPERATOR, "idle after aten::view", CLASS_IDLE }, NULL },
	{ "slow-data-loading",
	  { "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", KIND_OPERATOR,
	    "idle before aten::to", CLASS_IDLE },
	  NULL },
	{ "slow-data-loading", { NULL, KIND_PYTHON, "socket.py: recv_into", CLASS_HOST }, NULL },
	{ "cpu-bound-python", { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST }, NULL },
	{ "garbage-collection", { NULL, KIND_GC, "gc: collect generation 2", CLASS_HOST }, NULL },
	{ "garbage-collection",
	  { NULL, KIND_PYTHON, "tensor.py: __len__", CLASS_HOST },
	  collections },
	{ "gil-contention",
	  { "forward", KIND_OPERATOR, "idle after aten::view", CLASS_IDLE },
	  other_thread_computes },
	{ "cpu-starvation", { NULL, KIND_PYTHON, "augment.py: random_crop", CLASS_HOST }, no_cpu },
	{ "pinned-memory-allocation", { NULL, KIND_RUNTIME, "cudaHostAlloc", CLASS_HOST }, NULL },
	{ "load-imbalance", { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE }, longer_inputs },
	{ "slow-operator", { NULL, KIND_RUNTIME, "cudaLaunchKernel", CLASS_HOST }, NULL },
	{ "gpu-slow", { NULL, KIND_KERNEL, "mm", CLASS_COMPUTE }, NULL },
	{ "slow-copy", { NULL, KIND_GPU_MEMOP, "Memcpy HtoD", CLASS_MEMORY }, NULL },
};

static void each_pattern_of_a_late_worker_has_its_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		struct test_job job;
		struct report report;

		play(&job, &causes[i].place, 1, 30);
		if (causes[i].with != NULL)
			causes[i].with(&job);
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

/* The process that takes the CPU and the thread that holds the lock are named. */
static void the_evidence_names_who_is_in_the_way(void **state)
{
	struct test_job job;
	struct report report;
	bool found = false;

	(void)state;
	play(&job, &crop, 1, 30);
	no_cpu(&job);
	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.findings[0].evidence_cnt; i++)
		found |= strstr(report.findings[0].evidence[i], "stress-ng") != NULL;
	assert_true(found);
	report_done(&report);
	test_job_done(&job);
}

static bool evidence_has(struct test_job *job, const char *words)
{
	struct report report = test_localize(job, NULL);
	bool found = false;

	for (size_t i = 0; i < report.findings[0].evidence_cnt; i++)
		found |= strstr(report.findings[0].evidence[i], words) != NULL;
	report_done(&report);
	return found;
}

static void pressure_is_evidence_beside_a_cause_it_bears_on(void **state)
{
	struct fp_host *host;
	struct test_job job;

	(void)state;
	play(&job, &crop, 1, 30);
	no_cpu(&job);
	host = &job.workers[1].fp.host_stats;
	host->psi_cpu_frac = 0.63;
	host->psi_io_frac = 0.8;
	assert_true(evidence_has(&job, "the host's CPU pressure was 63 % (some)"));
	assert_false(evidence_has(&job, "I/O pressure"));
	host->psi_cpu_frac = 0.09;
	assert_false(evidence_has(&job, "pressure"));
	test_job_done(&job);
	play(&job, &causes[2].place, 1, 30); /* slow data loading */
	host = &job.workers[1].fp.host_stats;
	host->psi_cpu_frac = 0.63;
	host->psi_io_frac = 0.8;
	assert_true(evidence_has(&job, "the host's I/O pressure was 80 % (some)"));
	assert_false(evidence_has(&job, "CPU pressure"));
	test_job_done(&job);
}

static void what_is_slow_on_all_workers_is_one_finding(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++) {
			test_work(&job, w, &crop, 20);
			test_work(&job, w, &mm, 75);
		}
		test_meet(&job, 0, 0, 4, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-function-everywhere");
	assert_true(report.findings[0].all_workers);
	assert_float_equal(report.findings[0].gain_pct, 19, 0.01);
	report_done(&report);
	test_job_done(&job);
}

/* Rank 4 is nearly as slow as rank 2, but never the last; rank 1 is not worth a word. */
static void who_is_as_slow_but_never_last_is_named_too(void **state)
{
	static const double ms[] = { 2, 6, 30, 2, 27, 2 };
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 6, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 6; w++) {
			test_work(&job, w, &crop, ms[w]);
			test_work(&job, w, &mm, 75);
		}
		test_meet(&job, 0, 0, 6, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_int_equal(report.findings[0].rank_cnt, 2);
	assert_int_equal(report.findings[0].ranks[0], 2);
	assert_int_equal(report.findings[0].ranks[1], 4);
	report_done(&report);
	test_job_done(&job);
}

/* Ranks 2 and 3 share a host whose CPUs others use; only rank 2 is ever the last. */
static void those_who_share_a_starved_host_are_named_together(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &crop, 2, 30);
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
	report_done(&report);
	test_job_done(&job);
}

/* Once in six iterations, in pieces, everywhere. */
static void play_occasion(struct test_job *job, const struct test_place *place)
{
	test_job_init(job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(job);
		for (size_t w = 0; w < 4; w++) {
			if (i == 3)
				for (int chunk = 0; chunk < 12; chunk++)
					test_work(job, w, place, 10);
			test_work(job, w, &mm, 75);
		}
		test_meet(job, 0, 0, 4, 5);
	}
	test_finish(job);
}

static void a_checkpoint_of_all_is_no_finding_but_a_collection_is(void **state)
{
	static const struct test_place gc = { NULL, KIND_GC, "gc (generation 2)", CLASS_HOST };
	struct test_job job;
	struct report report;

	(void)state;
	play_occasion(&job, &crop);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	report_done(&report);
	test_job_done(&job);
	play_occasion(&job, &gc);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "garbage-collection");
	report_done(&report);
	test_job_done(&job);
}

static void a_collective_that_is_slow_for_all_accuses_no_worker(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &mm, 40);
		test_meet(&job, 0, 0, 4, 60);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-collective");
	assert_true(report.findings[0].all_workers);
	assert_float_equal(report.findings[0].gain_pct, 30, 0.01);
	report_done(&report);
	test_job_done(&job);
}

/* The late one's trace is absent: its victims must not be told that nobody was late. */
static void without_the_late_worker_nobody_can_tell_why_all_wait(void **state)
{
	struct localize_options options = localize_defaults();
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &nap, 3, 200);
	job.cnt = 3;
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "not analyzed"));
	report_done(&report);
	options.workers_expected = 3;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	report_done(&report);
	job.cnt = 4;
	test_job_done(&job);
}

/* --- the report --- */

static void findings_come_by_what_their_repair_gives_back(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 6, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 6; w++)
			test_work(&job, w, &mm, 48);
		test_work(&job, 1, &crop, 12);
		test_meet(&job, 0, 0, 6, 2);
		for (size_t w = 0; w < 6; w++)
			test_work(&job, w, &mm, 48);
		test_work(&job, 4, &nap, 25);
		test_meet(&job, 0, 0, 6, 2);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(&report.findings[0], "4");
	test_assert_ranks(&report.findings[1], "1");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 25, 0.1);
	assert_float_equal(report.findings[1].gain_ms_per_iteration, 12, 0.1);
	report_done(&report);
	test_job_done(&job);
}

/* The same stall in the forward and in the backward pass. */
static void one_fault_in_two_places_is_one_finding(void **state)
{
	static const struct test_place backward = { "backward", KIND_OPERATOR,
						    "idle after aten::add", CLASS_IDLE };
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	for (int i = 0; i < 6; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 4; w++)
			test_work(&job, w, &mm, 96);
		test_work(&job, 3, &nap, 10);
		test_work(&job, 3, &backward, 11);
		test_meet(&job, 0, 0, 4, 4);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "3");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 21, 0.1);
	report_done(&report);
	test_job_done(&job);
}

static void what_gives_back_less_than_min_gain_is_left_out(void **state)
{
	static const struct {
		double pause_ms, min_gain_pct;
		bool reported;
	} cases[] = { { 0.5, 1, false }, { 3, 1, true }, { 3, 5, false }, { 0.5, 0.1, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct localize_options options = localize_defaults();
		struct test_job job;
		struct report report;

		play(&job, &nap, 2, cases[i].pause_ms);
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

static void without_workers_nothing_is_concluded(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 0, 0, 0);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_string_equal(report.reason, "no worker could be analyzed");
	report_done(&report);
	test_job_done(&job);
}

static void one_iteration_is_too_short_to_conclude(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 4, 0, 0);
	test_iterate(&job);
	for (size_t w = 0; w < 4; w++)
		test_work(&job, w, &mm, 98);
	test_meet(&job, 0, 0, 4, 2);
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "too short"));
	report_done(&report);
	test_job_done(&job);
}

static void missing_workers_are_listed_and_too_many_end_in_no_conclusion(void **state)
{
	struct localize_options options = localize_defaults();
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &nap, SIZE_MAX, 0);
	job.workers[3].fp.rank = 6;
	options.workers_expected = 7;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_HEALTHY);
	assert_int_equal(report.missing_cnt, 3);
	assert_int_equal(report.missing[0], 3);
	assert_int_equal(report.missing[2], 5);
	report_done(&report);
	options.workers_expected = 16;
	report = test_localize(&job, &options);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_string_equal(report.reason, "only 4 of 16 workers could be analyzed");
	report_done(&report);
	test_job_done(&job);
}

static void chosen_ranks_are_all_that_is_expected(void **state)
{
	static const int chosen[] = { 1, 3, 8 };
	struct localize_options options = localize_defaults();
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &nap, SIZE_MAX, 0);
	job.fps[0] = job.fps[1];
	job.fps[1] = job.fps[3];
	job.cnt = 2;
	options.ranks_expected = chosen;
	options.rank_expected_cnt = ARRAY_SIZE(chosen);
	report = test_localize(&job, &options);
	assert_int_equal(report.workers_expected, 3);
	assert_int_equal(report.missing_cnt, 1);
	assert_int_equal(report.missing[0], 8);
	report_done(&report);
	job.cnt = 4;
	test_job_done(&job);
}

static void the_largest_rank_tells_how_many_there_are_at_least(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &nap, SIZE_MAX, 0);
	for (size_t w = 0; w < 4; w++)
		job.workers[w].fp.world_size = -1;
	job.workers[3].fp.rank = 5;
	report = test_localize(&job, NULL);
	assert_int_equal(report.workers_expected, 6);
	assert_int_equal(report.missing_cnt, 2);
	report_done(&report);
	test_job_done(&job);
}

static void two_workers_of_one_rank_are_an_error(void **state)
{
	struct localize_options options = localize_defaults();
	struct test_job job;
	struct report report;
	struct err err = { "" };

	(void)state;
	play(&job, &nap, SIZE_MAX, 0);
	job.workers[0].fp.rank = 2;
	assert_int_equal(localize(job.fps, job.cnt, &options, &report, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rank 2: expected one worker, found two"));
	test_job_done(&job);
}

static void the_order_of_the_fingerprints_does_not_matter(void **state)
{
	struct test_job job;
	struct report first, again;
	const struct fingerprint *swap;

	(void)state;
	play(&job, &nap, 2, 20);
	first = test_localize(&job, NULL);
	swap = job.fps[0];
	job.fps[0] = job.fps[2];
	job.fps[2] = swap;
	again = test_localize(&job, NULL);
	assert_int_equal(first.finding_cnt, again.finding_cnt);
	assert_string_equal(first.findings[0].title, again.findings[0].title);
	assert_string_equal(first.findings[0].key, again.findings[0].key);
	report_done(&first);
	report_done(&again);
	test_job_done(&job);
}

static void the_report_outlives_the_fingerprints(void **state)
{
	char name[] = "forward", source[] = "somewhere";
	struct test_place place = { name, KIND_OPERATOR, "idle after aten::view", CLASS_IDLE };
	struct test_job job;
	struct report report;

	(void)state;
	play(&job, &place, 2, 20);
	job.workers[1].fp.source = source;
	report = test_localize(&job, NULL);
	test_job_done(&job);
	memset(name, 'x', sizeof(name) - 1);
	memset(source, 'x', sizeof(source) - 1);
	assert_string_equal(report.findings[0].name, "idle in forward, after aten::view");
	assert_string_equal(report.workers[1].source, "somewhere");
	report_done(&report);
}

/* --- peers --- */

/* Two pipeline stages: different kernels, and the second stage computes twice as long. */
static void pipeline_stages_are_compared_apart(void **state)
{
	static const struct test_place stages[2] = { { NULL, KIND_KERNEL, "embedding",
						       CLASS_COMPUTE },
						     { NULL, KIND_KERNEL, "head", CLASS_COMPUTE } };
	struct test_job job;
	struct report report;
	struct job joined;

	(void)state;
	test_job_init(&job, 16, 0, 0);
	for (int i = 0; i < 4; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 16; w++)
			test_work(&job, w, &stages[w / 8], w < 8 ? 40 : 80);
	}
	test_finish(&job);
	assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
	assert_int_equal(peers_find(&joined), 0);
	assert_int_equal(joined.group_cnt, 2);
	for (size_t w = 0; w < 16; w++)
		assert_int_equal(joined.workers[w].group, w / 8);
	job_done(&joined);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	report_done(&report);
	test_job_done(&job);
}

static void a_slow_worker_stays_among_its_peers(void **state)
{
	struct test_job job;
	struct job joined;

	(void)state;
	play(&job, &mm, 1, 300);
	assert_int_equal(job_init(&joined, job.fps, job.cnt), 0);
	assert_int_equal(peers_find(&joined), 0);
	assert_int_equal(joined.group_cnt, 1);
	job_done(&joined);
	test_job_done(&job);
}

/* --- memory --- */

static void want_of_memory_is_told_and_nothing_is_kept(void **state)
{
	struct localize_options options = localize_defaults();
	struct test_job job;
	struct report report;
	struct err err;
	int error = -ENOMEM;
	size_t failed = 0;

	(void)state;
	play(&job, &nap, 2, 20);
	for (int n = 0; error != 0; n++) {
		allocations_left = n;
		error = localize(job.fps, job.cnt, &options, &report, &err);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
		failed += error != 0;
	}
	assert_true(failed > 20);
	test_assert_ranks(&report.findings[0], "2");
	report_done(&report);
	test_job_done(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pattern_of_a_late_worker_has_its_cause),
		cmocka_unit_test(the_evidence_names_who_is_in_the_way),
		cmocka_unit_test(pressure_is_evidence_beside_a_cause_it_bears_on),
		cmocka_unit_test(what_is_slow_on_all_workers_is_one_finding),
		cmocka_unit_test(who_is_as_slow_but_never_last_is_named_too),
		cmocka_unit_test(those_who_share_a_starved_host_are_named_together),
		cmocka_unit_test(a_checkpoint_of_all_is_no_finding_but_a_collection_is),
		cmocka_unit_test(a_collective_that_is_slow_for_all_accuses_no_worker),
		cmocka_unit_test(without_the_late_worker_nobody_can_tell_why_all_wait),
		cmocka_unit_test(findings_come_by_what_their_repair_gives_back),
		cmocka_unit_test(one_fault_in_two_places_is_one_finding),
		cmocka_unit_test(what_gives_back_less_than_min_gain_is_left_out),
		cmocka_unit_test(without_workers_nothing_is_concluded),
		cmocka_unit_test(one_iteration_is_too_short_to_conclude),
		cmocka_unit_test(missing_workers_are_listed_and_too_many_end_in_no_conclusion),
		cmocka_unit_test(chosen_ranks_are_all_that_is_expected),
		cmocka_unit_test(the_largest_rank_tells_how_many_there_are_at_least),
		cmocka_unit_test(two_workers_of_one_rank_are_an_error),
		cmocka_unit_test(the_order_of_the_fingerprints_does_not_matter),
		cmocka_unit_test(the_report_outlives_the_fingerprints),
		cmocka_unit_test(pipeline_stages_are_compared_apart),
		cmocka_unit_test(a_slow_worker_stays_among_its_peers),
		cmocka_unit_test(want_of_memory_is_told_and_nothing_is_kept),
	};

	return cmocka_run_group_tests_name("localize", tests, NULL, NULL);
}
