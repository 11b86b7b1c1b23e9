/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in which many are slow, or all by turns: what workers do beside communication. */
#include "localize/test_job.h"

#include <string.h>

#define WORKERS 8
#define ITERATIONS 6

static const struct test_place batch = { NULL, KIND_PYTHON, "socket.py: recv_into", CLASS_HOST };

/* Each worker computes and loads, in ms; then all meet. */
static void play(struct test_job *job, const double compute[WORKERS], const double load[WORKERS])
{
	test_job_init(job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(job);
		for (size_t w = 0; w < WORKERS; w++) {
			if (load != NULL)
				test_work(job, w, &batch, load[w]);
			test_work(job, w, &test_mm, compute[w] + (double)((w + (size_t)i) % 3) / 5);
		}
		test_meet(job, 0, 0, WORKERS, 5);
	}
	test_finish(job);
}

static struct report play_and_localize(struct test_job *job, const double compute[WORKERS],
				       const double load[WORKERS])
{
	play(job, compute, load);
	return test_localize(job, NULL);
}

static void set_elements(struct test_job *job, const double elements[WORKERS])
{
	for (size_t w = 0; w < WORKERS; w++) {
		vec_foreach(f, &job->workers[w].functions)
			f->elements = f->class == CLASS_COMPUTE ? elements[w] : -1;
	}
}

/* Four of eight arrivals are late, so the median is too, and no worker is late against it. */
static void half_of_the_workers_can_be_slow(void **state)
{
	static const double compute[WORKERS] = { 75, 75, 97, 97, 75, 75, 97, 97 };
	struct test_job job;
	struct report report = play_and_localize(&job, compute, NULL);

	(void)state;
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "gpu-slow");
	test_assert_ranks(&report.findings[0], "2-3,6-7");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 22, 1);
	report_done(&report);
	test_job_done(&job);
}

/* Ranks 4 and 5 are never the last, because rank 1 always is. */
static void a_fault_behind_a_larger_one_is_named_too(void **state)
{
	static const double compute[WORKERS] = { 75, 105, 75, 75, 75, 75, 75, 75 };
	static const double load[WORKERS] = { 1, 1, 1, 1, 16, 16, 1, 1 };
	struct test_job job;
	struct report report = play_and_localize(&job, compute, load);
	const struct finding *slow = test_find(&report, "gpu-slow"),
			     *late = test_find(&report, "slow-data-loading");

	(void)state;
	assert_int_equal(report.finding_cnt, 2);
	assert_non_null(slow);
	assert_non_null(late);
	test_assert_ranks(slow, "1");
	test_assert_ranks(late, "4-5");
	report_done(&report);
	test_job_done(&job);
}

/* Rank 1 loads late, as rank 0 does, and is slower in all that it computes. */
static void a_worker_can_have_two_faults(void **state)
{
	static const double compute[WORKERS] = { 75, 95, 75, 75, 75, 75, 75, 75 };
	static const double load[WORKERS] = { 16, 16, 1, 1, 1, 1, 1, 1 };
	struct test_job job;
	struct report report = play_and_localize(&job, compute, load);

	(void)state;
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "gpu-slow"), "1");
	test_assert_ranks(test_find(&report, "slow-data-loading"), "0-1");
	report_done(&report);
	test_job_done(&job);
}

/* Most of those with the same to do are busier than rank 1, because they load late. */
static void a_slow_device_shows_beside_many_slow_hosts(void **state)
{
	static const double compute[WORKERS] = { 75, 95, 75, 75, 75, 75, 75, 75 };
	static const double load[WORKERS] = { 1, 1, 1, 1, 25, 25, 25, 25 };
	struct test_job job;
	struct report report = play_and_localize(&job, compute, load);

	(void)state;
	assert_int_equal(report.finding_cnt, 2);
	test_assert_ranks(test_find(&report, "gpu-slow"), "1");
	test_assert_ranks(test_find(&report, "slow-data-loading"), "4-7");
	report_done(&report);
	test_job_done(&job);
}

static void times_that_differ_evenly_are_no_two_populations(void **state)
{
	static const double compute[WORKERS] = { 75, 77, 79, 81, 83, 85, 87, 89 };
	struct test_job job;
	struct report report = play_and_localize(&job, compute, NULL);

	(void)state;
	for (size_t i = 0; i < report.finding_cnt; i++)
		assert_true(report.findings[i].rank_cnt <= 1);
	report_done(&report);
	test_job_done(&job);
}

/* Half of them run another layer: more to do, not slower. One of them is always the last. */
static void a_worker_with_more_work_is_accused_alone_at_most(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++) {
			for (size_t layer = 0; layer < (w < WORKERS / 2 ? 3 : 4); layer++)
				test_work(&job, w, &test_mm, 20);
		}
		test_meet(&job, 0, 0, WORKERS, 5);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	for (size_t i = 0; i < report.finding_cnt; i++)
		assert_int_equal(report.findings[i].rank_cnt, 1);
	report_done(&report);
	test_job_done(&job);
}

/* Rank 1 lets its half wait, and then with it the other half: mostly for the same 20 ms. */
static void the_gain_of_lateness_in_two_groups_counts_once(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < WORKERS; w++)
			test_work(&job, w, &test_mm, 75);
		test_work(&job, 1, &test_nap, 20);
		test_meet(&job, 1, 0, WORKERS / 2, 2);
		test_meet(&job, 2, WORKERS / 2, WORKERS / 2, 2);
		test_work(&job, 1, &test_nap, 1);
		test_meet(&job, 0, 0, WORKERS, 3);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	test_assert_ranks(&report.findings[0], "1");
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 21, 0.1);
	report_done(&report);
	test_job_done(&job);
}

/*
 * Of 36 pairs that meet beside each other both load late in a third, one in another third:
 * only these are ever the last in their pairs, and none of them has much of all lost time.
 */
static void workers_as_slow_in_other_groups_are_named_too(void **state)
{
	struct test_job job;
	struct report report;

	(void)state;
	test_job_init(&job, 72, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < 72; w++) {
			test_work(&job, w, &batch, w % 6 < 3 ? 16 : 1);
			test_work(&job, w, &test_mm, 75 + (double)((w / 2 + i) % 3) / 5);
		}
		for (size_t w = 0; w < 72; w += 2)
			test_meet(&job, 1, w, 2, 1);
		test_meet(&job, 0, 0, 72, 5);
	}
	test_finish(&job);
	for (size_t w = 0; w < 72; w++) {
		vec_foreach(c, &job.workers[w].collectives)
			c->group += c->group == 1001 ? 100 * (w / 2 + 1) : 0;
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	assert_int_equal(report.findings[0].rank_cnt, 36);
	assert_null(strstr(report.findings[0].title, "turns"));
	report_done(&report);
	test_job_done(&job);
}

/* --- stages of a pipeline --- */

static const struct test_place head = { NULL, KIND_KERNEL, "head", CLASS_COMPUTE };
static const struct test_place message = { NULL, KIND_KERNEL, "ncclDevKernel_SendRecv",
					   CLASS_COMM };

/*
 * Four stages of two workers each run 8 layers, in ms; the last has a head too. Each stage
 * waits for the slowest, then its workers meet.
 */
static void play_stages(struct test_job *job, const double layer[WORKERS])
{
	test_job_init(job, WORKERS, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(job);
		for (size_t w = 0; w < WORKERS; w++) {
			double wait = 110 + (double)((w + i) % 3) / 5;

			for (size_t k = 0; k < 8; k++)
				test_work(job, w, &test_mm, layer[w]);
			if (w >= 6)
				test_work(job, w, &head, layer[w]);
			wait -= 8 * layer[w] + (w >= 6 ? layer[w] : 0);
			test_work(job, w, &message, wait);
		}
		for (unsigned int stage = 0; stage < 4; stage++)
			test_meet(job, stage, 2 * stage, 2, 5);
	}
	test_finish(job);
}

/* All workers of the stage are slow; only the layers of the other stages show it. */
static void all_of_a_stage_can_be_slow(void **state)
{
	static const double layer[WORKERS] = { 10, 10, 10, 10, 10, 10, 12, 12 };
	struct test_job job;
	struct report report;

	(void)state;
	play_stages(&job, layer);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "gpu-slow");
	test_assert_ranks(&report.findings[0], "6-7");
	/* The head, which only the last stage runs, is slower too: 90 ms take 108. */
	assert_float_equal(report.findings[0].gain_ms_per_iteration, 18, 0.1);
	report_done(&report);
	test_job_done(&job);
}

static void a_stage_with_larger_layers_is_not_slow(void **state)
{
	static const double layer[WORKERS] = { 10, 10, 10, 10, 10, 10, 12, 12 };
	static const double elements[WORKERS] = { 1000, 1000, 1000, 1000, 1000, 1000, 1200, 1200 };
	struct test_job job;
	struct report report;

	(void)state;
	play_stages(&job, layer);
	set_elements(&job, elements);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 0);
	report_done(&report);
	test_job_done(&job);
}

/* --- inputs --- */

/*
 * Iteration i is longest on worker i: inputs of up to 20 % more, in sum not the same. Rank 2
 * loads its batch for so many ms.
 */
static void play_turns(struct test_job *job, double load_ms, double elements[WORKERS])
{
	static const double extra[ITERATIONS] = { 20, 14, 18, 10, 16, 19 };

	memset(elements, 0, WORKERS * sizeof(*elements));
	test_job_init(job, WORKERS, 0, 0);
	for (int i = 0; i < ITERATIONS; i++) {
		test_iterate(job);
		for (size_t w = 0; w < WORKERS; w++) {
			double more = w == (size_t)i ? extra[i] : (double)((w * 5 + 1) % 7) / 2;

			if (w == 2 && load_ms > 0)
				test_work(job, w, &batch, load_ms);
			test_work(job, w, &test_mm, 75 * (1 + more / 100));
			elements[w] += 1000 * (1 + more / 100) / ITERATIONS;
		}
		test_meet(job, 0, 0, WORKERS, 5);
	}
	test_finish(job);
}

static void uneven_inputs_by_turns_are_a_finding_of_all(void **state)
{
	double elements[WORKERS];
	struct test_job job;
	struct report report;

	(void)state;
	play_turns(&job, 0, elements);
	report = test_localize(&job, NULL);
	assert_null(test_find(&report, "load-imbalance"));
	report_done(&report);
	set_elements(&job, elements);
	report = test_localize(&job, NULL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].cause, "load-imbalance");
	assert_true(report.findings[0].all_workers);
	report_done(&report);
	test_job_done(&job);
}

/* All compute the same; what is too short to be listed for sure has elements too. */
static void functions_that_some_list_by_chance_are_no_inputs(void **state)
{
	static const double same[WORKERS] = { 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000 };
	double elements[WORKERS];
	struct test_job job;
	struct report report;

	(void)state;
	play_turns(&job, 0, elements);
	set_elements(&job, same);
	for (size_t w = 0; w < WORKERS; w++) {
		uint32_t frame = test_frame(&job, w, FRAME_NONE, KIND_KERNEL, "add_");

		if (elements[w] > 1030)
			test_function(&job, w, frame, CLASS_COMPUTE, 1e-4)->elements =
				elements[w] - 1000;
	}
	report = test_localize(&job, NULL);
	assert_null(test_find(&report, "load-imbalance"));
	report_done(&report);
	test_job_done(&job);
}

/* What the others wait for is a host: inputs of up to 15 ms more cost no more than that. */
static void lateness_of_a_host_is_not_counted_to_inputs(void **state)
{
	double elements[WORKERS];
	struct test_job job;
	struct report report;

	(void)state;
	play_turns(&job, 60, elements);
	set_elements(&job, elements);
	report = test_localize(&job, NULL);
	assert_true(report.finding_cnt > 0);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	test_assert_ranks(&report.findings[0], "2");
	for (size_t i = 1; i < report.finding_cnt; i++)
		assert_true(report.findings[i].gain_ms_per_iteration <= 15);
	report_done(&report);
	test_job_done(&job);
}

/* Five per cent more to do explain five per cent more time, not fifteen. */
static void a_little_more_work_is_the_cause_of_a_little_more_time(void **state)
{
	static const double elements[WORKERS] = { 1000, 1000, 1000, 1050, 1000, 1000, 1000, 1000 };
	static const struct {
		double ms;
		const char *cause;
	} cases[] = { { 80 * 1.05, "load-imbalance" }, { 80 * 1.15, "gpu-slow" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double compute[WORKERS] = { 80, 80, 80, cases[i].ms, 80, 80, 80, 80 };
		struct test_job job;
		struct report report;

		play(&job, compute, NULL);
		set_elements(&job, elements);
		report = test_localize(&job, NULL);
		assert_int_equal(report.finding_cnt, 1);
		assert_string_equal(report.findings[0].cause, cases[i].cause);
		test_assert_ranks(&report.findings[0], "3");
		report_done(&report);
		test_job_done(&job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_the_workers_can_be_slow),
		cmocka_unit_test(a_fault_behind_a_larger_one_is_named_too),
		cmocka_unit_test(a_worker_can_have_two_faults),
		cmocka_unit_test(a_slow_device_shows_beside_many_slow_hosts),
		cmocka_unit_test(times_that_differ_evenly_are_no_two_populations),
		cmocka_unit_test(a_worker_with_more_work_is_accused_alone_at_most),
		cmocka_unit_test(workers_as_slow_in_other_groups_are_named_too),
		cmocka_unit_test(the_gain_of_lateness_in_two_groups_counts_once),
		cmocka_unit_test(all_of_a_stage_can_be_slow),
		cmocka_unit_test(a_stage_with_larger_layers_is_not_slow),
		cmocka_unit_test(uneven_inputs_by_turns_are_a_finding_of_all),
		cmocka_unit_test(functions_that_some_list_by_chance_are_no_inputs),
		cmocka_unit_test(lateness_of_a_host_is_not_counted_to_inputs),
		cmocka_unit_test(a_little_more_work_is_the_cause_of_a_little_more_time),
	};

	return cmocka_run_group_tests_name("by_split", tests, NULL, NULL);
}
