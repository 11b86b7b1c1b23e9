/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/verdict/conclude.h"

#include "base/test_alloc.h"
#include "localize/shares.h"
#include "localize/test_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A window of four ranks in which nothing was found and nothing is missing. */
static struct report seen(void)
{
	struct report report = { .world_size = 4,
				 .workers_expected = 4,
				 .workers_analyzed = 4,
				 .iterations = 16,
				 .iteration_ms = 100 };

	arena_init(&report.arena);
	return report;
}

static const struct conclude_facts quiet = {
	.matched = true,
	.unmatched_rank = -1,
	.min_gain_pct = 1,
	.late.rank = -1,
	.chance.rank = -1,
	.tail.rank = -1,
	.pace.rank = -1,
};

/* Concludes, compares verdict and the beginning of the reason, and frees the report. */
static void expect(struct report *report, const struct conclude_facts *facts, enum verdict verdict,
		   const char *reason)
{
	assert_int_equal(conclude(report, facts), 0);
	assert_string_equal(verdict_name(report->verdict), verdict_name(verdict));
	if (strncmp(report->reason, reason, strlen(reason)) != 0)
		assert_string_equal(report->reason, reason);
	arena_done(&report->arena);
}

static struct report_trigger slowdown(void)
{
	return (struct report_trigger){ .present = true,
					.kind = "slowdown",
					.baseline_iteration_ms = 9.8,
					.current_iteration_ms = 33.8,
					.step = 700,
					.since_step = 650 };
}

static void a_whole_window_without_a_finding_is_healthy(void **state)
{
	struct report report = seen();

	(void)state;
	expect(&report, &quiet, VERDICT_HEALTHY,
	       "no rank makes the others wait for more than 1 % of an iteration beyond normal");
}

static void a_rank_late_at_the_end_of_a_recorded_window_is_not_healthy(void **state)
{
	struct report report = seen(), live = seen();
	struct conclude_facts facts = quiet;

	(void)state;
	facts.tail = (struct conclude_late){ .rank = 2, .ms = 93.4, .pct = 14.5 };
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "rank 2 spends 93.4 ms more than its peers after its last collective, at the end of "
	       "the window (14.5 % of all iterations); whether");
	live.trigger = (struct report_trigger){ .present = true, .kind = "checkup" };
	expect(&live, &facts, VERDICT_HEALTHY, "no rank");
}

/* One rank of several: the others may compute faster. A job of one rank has no others. */
static void one_rank_of_several_is_not_healthy(void **state)
{
	struct conclude_facts facts = quiet;

	(void)state;
	facts.alone = true;
	facts.matched = false;
	for (int world = 1; world <= 2; world++) {
		struct report report = seen();

		report.world_size = world;
		report.workers_expected = report.workers_analyzed = 1;
		expect(&report, &facts, world > 1 ? VERDICT_INCONCLUSIVE : VERDICT_HEALTHY,
		       "nothing that one rank shows by itself is slow");
	}
}

static void a_rank_at_another_pace_is_not_healthy(void **state)
{
	struct report report = seen(), live = seen();
	struct conclude_facts facts = quiet;

	(void)state;
	facts.pace = (struct conclude_late){ .rank = 6, .ms = 29.3, .pct = 50.2 };
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "iterations of rank 6 take 29.3 ms longer (50.2 %) than those of the typical rank");
	live.trigger = (struct report_trigger){ .present = true, .kind = "checkup" };
	expect(&live, &facts, VERDICT_HEALTHY, "no rank");
}

/* What one host waits for on another cannot be seen where nothing relates their clocks. */
static void hosts_that_nothing_relates_are_not_healthy(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.unrelated = true;
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "nothing stands out on a single host");
}

static void a_job_whose_devices_hardly_compute_is_not_healthy(void **state)
{
	struct report_worker workers[4] = { 0 };

	(void)state;
	for (int own = 0; own < 3; own++) {
		static const double compute[] = { 0.4, 0.05, 0.2 };
		static const char *const reasons[] = {
			"no rank makes",
			"the GPUs compute for 5.0 % of the window and have no work for 30 %",
			"the GPUs compute for 20.0 % of the window and have no work for 30 %",
		};
		struct report report = seen();

		for (size_t w = 0; w < ARRAY_SIZE(workers); w++)
			workers[w].use = (struct report_use){ .known = true,
							      .compute_frac = compute[own],
							      .starved_frac = 0.3 };
		report.workers = workers;
		report.worker_cnt = ARRAY_SIZE(workers);
		expect(&report, &quiet, own ? VERDICT_INCONCLUSIVE : VERDICT_HEALTHY, reasons[own]);
	}
}

/* Hosts that are far ahead, or whose devices wait for them, may be slow in other iterations. */
static void few_iterations_may_hide_what_hosts_do(void **state)
{
	static const struct {
		double iterations, delay_us, starved;
		const char *reason;
		size_t fewer_workers;
	} of[] = { { 3, 120e3, 0,
		     "kernels begin 120 ms after their launch, and iterations take 100 ms" },
		   { 3, 20e3, 0.1, "the GPUs have no work for 10 % of a window of few iterations" },
		   { 3, 20e3, 0.01, NULL },
		   { 3, 120e3, 0.1, NULL, .fewer_workers = 3 }, /* one: as far as it shows */
		   { 16, 120e3, 0.1, NULL } };
	struct report_worker workers[4] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct report report = seen();

		for (size_t w = 0; w < ARRAY_SIZE(workers); w++)
			workers[w].use = (struct report_use){ .known = true,
							      .compute_frac = 0.8,
							      .launch_delay_us = of[i].delay_us,
							      .starved_frac = of[i].starved };
		report.workers = workers;
		report.worker_cnt = ARRAY_SIZE(workers) - of[i].fewer_workers;
		report.iterations = of[i].iterations;
		expect(&report, &quiet,
		       of[i].reason != NULL ? VERDICT_INCONCLUSIVE : VERDICT_HEALTHY,
		       of[i].reason != NULL ? of[i].reason : "no rank makes");
	}
}

static void a_slowdown_without_a_finding_is_slow_and_says_how_much(void **state)
{
	struct report report = seen();

	(void)state;
	report.trigger = slowdown();
	report.iteration_ms = 34;
	expect(&report, &quiet, VERDICT_SLOW, "9.8 -> 33.8 ms since step 650 (3.4x)");
}

static void a_slowdown_of_threads_without_cpus_says_so(void **state)
{
	struct finding finding = { .title = "rank 2: host stall", .confidence = CONFIDENCE_LOW };
	struct conclude_facts starved = quiet;
	struct report report = seen();

	(void)state;
	starved.starved_ms = 13;
	report.trigger = slowdown();
	report.iteration_ms = 34;
	expect(&report, &starved, VERDICT_SLOW,
	       "9.8 -> 33.8 ms since step 650 (3.4x); the training threads waited for a CPU for "
	       "13.0 ms of each iteration: ");

	/* Less than explains it, and beside a finding. */
	starved.starved_ms = 11;
	report = seen();
	report.trigger = slowdown();
	report.iteration_ms = 34;
	assert_int_equal(conclude(&report, &starved), 0);
	assert_string_equal(report.reason, "9.8 -> 33.8 ms since step 650 (3.4x)");
	arena_done(&report.arena);
	starved.starved_ms = 30;
	report = seen();
	report.trigger = slowdown();
	report.iteration_ms = 34;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &starved, VERDICT_SLOW,
	       "9.8 -> 33.8 ms since step 650 (3.4x); weak evidence: rank 2: host stall");
}

static void a_slight_slowdown_without_a_sure_finding_may_be_the_machines(void **state)
{
	struct finding finding = { .title = "rank 2: host stall", .confidence = CONFIDENCE_MEDIUM };
	struct report report = seen();

	(void)state;
	report.trigger = slowdown();
	report.trigger.current_iteration_ms = 11;
	report.iteration_ms = 11;
	expect(&report, &quiet, VERDICT_INCONCLUSIVE,
	       "9.8 -> 11.0 ms since step 650 (1.1x); the speed of a machine that other work "
	       "shares may vary by as much");
	report = seen();
	report.trigger = slowdown();
	report.trigger.current_iteration_ms = 11;
	report.iteration_ms = 11;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &quiet, VERDICT_ABNORMAL, "rank 2: host stall");
}

static void a_requested_window_of_a_slow_job_is_slow(void **state)
{
	struct report report = seen();

	(void)state;
	report.trigger = slowdown();
	report.trigger.kind = "request";
	report.iteration_ms = 34;
	expect(&report, &quiet, VERDICT_SLOW, "9.8 -> 33.8 ms");
	report = seen();
	report.trigger = slowdown();
	report.trigger.kind = "request";
	report.trigger.since_step = 0;
	report.trigger.current_iteration_ms = report.iteration_ms = 10;
	expect(&report, &quiet, VERDICT_HEALTHY, "");
}

static void a_window_after_the_slowdown_shows_nothing_of_it(void **state)
{
	struct report report = seen();

	(void)state;
	report.trigger = slowdown();
	report.iteration_ms = 10;
	expect(&report, &quiet, VERDICT_INCONCLUSIVE, "the slowdown was over before the window: ");
	report.iteration_ms = 15;
	expect(&report, &quiet, VERDICT_INCONCLUSIVE,
	       "most of the slowdown was over before the window: iterations of 33.8 ms when it was "
	       "noticed, 15.0 ms in the window, 9.8 ms at best");
}

static void a_slow_job_with_a_finding_is_abnormal_and_with_a_weak_one_slow(void **state)
{
	struct finding finding = { .title = "rank 2: host stall", .confidence = CONFIDENCE_MEDIUM };
	struct report report = seen();

	(void)state;
	report.trigger = slowdown();
	report.iteration_ms = 34;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &quiet, VERDICT_ABNORMAL, "rank 2: host stall");
	report = seen();
	report.trigger = slowdown();
	report.iteration_ms = 34;
	finding.confidence = CONFIDENCE_LOW;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &quiet, VERDICT_SLOW,
	       "9.8 -> 33.8 ms since step 650 (3.4x); weak evidence: rank 2: host stall");
}

static void a_window_slower_than_its_past_is_not_healthy(void **state)
{
	const struct finding weak = { .title = "rank 2: host stall", .confidence = CONFIDENCE_LOW };
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.past_ms = 1.2;
	report.iteration_ms = 10.6;
	expect(&report, &facts, VERDICT_SLOW,
	       "iterations of 1.2 ms in the job's past, of 10.6 ms in this window");
	report = seen();
	report.iteration_ms = 10.6;
	report.findings = &weak;
	report.finding_cnt = 1;
	expect(&report, &facts, VERDICT_SLOW,
	       "iterations of 1.2 ms in the job's past, of 10.6 ms in this window; weak evidence: "
	       "rank 2: host stall");
}

static void missing_ranks_are_named_with_what_the_others_wait(void **state)
{
	static const int missing[] = { 2, 3 };
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.wait_ms = 20;
	report.workers_analyzed = 3;
	report.missing = missing;
	report.missing_cnt = 1;
	expect(&report, &facts, VERDICT_INCOMPLETE,
	       "rank 2's trace is missing, and those present wait up to 20 ms an iteration for "
	       "a missing rank");
	facts.wait_ms = 0;
	report = seen();
	report.workers_analyzed = 2;
	report.missing = missing;
	report.missing_cnt = 2;
	expect(&report, &facts, VERDICT_INCOMPLETE,
	       "the traces of ranks 2-3 are missing; no fault shows in those present");
}

/* What has no victims may be chance; those present wait longer for a rank that is not here. */
static void what_costs_less_than_a_missing_rank_is_not_sure(void **state)
{
	static const int missing[] = { 2 };
	struct finding finding = { .title = "random stalls",
				   .confidence = CONFIDENCE_MEDIUM,
				   .gain_ms_per_iteration = 10 };
	struct conclude_facts facts = quiet;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct report report = seen();

		report.missing = missing;
		report.missing_cnt = 1;
		report.findings = &finding;
		report.finding_cnt = 1;
		facts.wait_ms = facts.absent_ms = i == 0 ? 20 : i == 1 ? 5 : 20;
		finding.victim_cnt = i == 2 ? 1 : 0;
		expect(&report, &facts, i == 0 ? VERDICT_INCOMPLETE : VERDICT_ABNORMAL,
		       i == 0 ? "rank 2's trace is missing, and those present wait up to 20 ms"
			      : "random stalls");
	}
}

static void ranks_left_out_by_choice_matter_where_others_wait(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	report.workers_expected = report.workers_analyzed = 3;
	expect(&report, &facts, VERDICT_HEALTHY, "");
	facts.wait_ms = 20;
	report = seen();
	report.workers_expected = report.workers_analyzed = 3;
	expect(&report, &facts, VERDICT_INCOMPLETE, "1 of 4 ranks were not analyzed, and those");
}

static void a_late_rank_without_a_cause_is_named_and_not_healthy(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.late = (struct conclude_late){ .rank = 2, .ms = 41, .pct = 18.4 };
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "rank 2 arrives late by 41.0 ms per iteration (18.4 %), but no function explains");
	report = seen();
	report.iterations = 1;
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "rank 2 arrives late by 41.0 ms");
}

static void one_iteration_is_enough_where_ranks_meet_often(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	report.iterations = 1;
	facts.met_cnt = 19;
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "one iteration is too short a window");
	report = seen();
	report.iterations = 1;
	facts.met_cnt = 84;
	expect(&report, &facts, VERDICT_HEALTHY, "");
	facts.late = (struct conclude_late){ .rank = 2, .ms = 41, .pct = 18.4 };
	report = seen();
	report.iterations = 1;
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "rank 2 arrives late by 41.0 ms");
}

static void weak_evidence_comes_behind_a_missing_rank(void **state)
{
	static const int missing[] = { 2 };
	struct finding finding = { .title = "rank 1: host stall", .confidence = CONFIDENCE_LOW };
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.wait_ms = 20;
	report.workers_analyzed = 3;
	report.missing = missing;
	report.missing_cnt = 1;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &facts, VERDICT_INCOMPLETE,
	       "rank 2's trace is missing, and those present wait up to 20 ms an iteration for "
	       "a missing rank or for the network: to decide, add the missing traces");
	finding.gain_ms_per_iteration = 50;
	report = seen();
	report.workers_analyzed = 3;
	report.missing = missing;
	report.missing_cnt = 1;
	report.findings = &finding;
	report.finding_cnt = 1;
	expect(&report, &facts, VERDICT_INCOMPLETE,
	       "rank 2's trace is missing, and those present wait up to 20 ms an iteration for "
	       "a missing rank or for the network; weak evidence: rank 1: host stall: to decide, ");
}

static void what_to_record_instead_is_said(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	report.iterations = 1;
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "one iteration is too short a window to tell a fault from normal variation: to decide, record "
	       "all ranks, the same 5 steps or more (torch.profiler: schedule(active=5))");
	facts.late = (struct conclude_late){ .rank = 2, .ms = 41, .pct = 18.4 };
	report = seen();
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "rank 2 arrives late by 41.0 ms per iteration (18.4 %), but no function explains it: "
	       "to decide, record all ranks, the same 32 steps or more (torch.profiler: "
	       "schedule(active=32))");
	report = seen();
	report.trigger = slowdown();
	report.trigger.kind = "checkup";
	report.trigger.since_step = 0;
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "rank 2 arrives late by 41.0 ms per iteration (18.4 %), but no function explains it: "
	       "a window of more iterations may tell");
}

static void ranks_without_peers_and_collectives_are_not_called_healthy(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.apart = true;
	expect(&report, &facts, VERDICT_HEALTHY, "");
	facts.matched = false;
	report = seen();
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "the ranks were not compared: each");
	facts.apart = false;
	report = seen();
	expect(&report, &facts, VERDICT_HEALTHY, "no function takes more time");
}

static struct report checkup_of(double iteration_ms)
{
	struct report report = seen();

	report.trigger = slowdown();
	report.trigger.kind = "checkup";
	report.trigger.since_step = 0;
	report.trigger.baseline_iteration_ms = 10;
	report.trigger.current_iteration_ms = 19;
	report.iteration_ms = iteration_ms;
	return report;
}

static void a_check_up_of_a_job_far_from_its_best_pace_is_not_healthy(void **state)
{
	struct report report = checkup_of(18);

	(void)state;
	expect(&report, &quiet, VERDICT_INCONCLUSIVE,
	       "iterations of 18.0 ms in this window and 10.0 ms at best (1.8x), but");
	report = checkup_of(11);
	expect(&report, &quiet, VERDICT_HEALTHY, "no rank makes the others wait");
}

static void a_rank_that_chance_makes_very_late_is_named_and_not_healthy(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.chance = (struct conclude_late){ .rank = 3, .ms = 7.5, .pct = 48 };
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "rank 3 is late by 7.5 ms per iteration (48.0 %), but only in some iterations");
}

/* Two ranks, a window of so many iterations of 100 ms, one of which took long_ms. */
static void conclude_long(int cnt, int which, double long_ms, enum verdict verdict)
{
	struct report report = seen();
	struct report_worker workers[2] = { 0 };
	double lengths[8];

	for (int i = 0; i < cnt; i++)
		lengths[i] = i == which ? long_ms : 100;
	workers[0].iteration_ms = workers[1].iteration_ms = lengths;
	workers[0].iteration_cnt = workers[1].iteration_cnt = (size_t)cnt;
	report.workers = workers;
	report.worker_cnt = 2;
	report.iterations = cnt;
	expect(&report, &quiet, verdict, verdict == VERDICT_HEALTHY ? "no rank" : "one of ");
}

static void one_long_iteration_in_a_few_leaves_it_open(void **state)
{
	(void)state;
	conclude_long(3, 2, 180, VERDICT_INCONCLUSIVE);
	conclude_long(3, 2, 140, VERDICT_HEALTHY);
	conclude_long(3, 0, 180, VERDICT_HEALTHY); /* warms up */
	conclude_long(6, 2, 180, VERDICT_HEALTHY); /* the rule of occasions has enough to look at */
}

static void lost_records_and_unmatched_collectives_leave_it_open(void **state)
{
	struct conclude_facts facts = quiet;
	struct report report = seen();

	(void)state;
	facts.unmatched_rank = 3;
	expect(&report, &facts, VERDICT_INCONCLUSIVE,
	       "the collectives of rank 3 match those of no");
	facts = quiet;
	facts.lossy_rank = 1;
	facts.lost_frac = 0.5;
	report = seen();
	expect(&report, &facts, VERDICT_INCONCLUSIVE, "rank 1 lost 50 % of what it was to record");
}

static void without_memory_nothing_is_concluded(void **state)
{
	struct report report = seen();

	(void)state;
	allocations_left = 0;
	assert_int_equal(conclude(&report, &quiet), -ENOMEM);
	allocations_left = -1;
	arena_done(&report.arena);
}

/* --- the functions that hold the window --- */

static void the_functions_that_hold_the_window_are_listed_by_size(void **state)
{
	struct test_job job = { 0 };
	struct report report;
	uint32_t caller, load;

	(void)state;
	test_job_init(&job, 2, 1000, 10);
	for (size_t w = 0; w < 2; w++) {
		caller = test_frame(&job, w, FRAME_NONE, KIND_PYTHON, "train");
		load = test_frame(&job, w, caller, KIND_PYTHON, "load");
		test_function(&job, w, load, CLASS_HOST, w == 0 ? 0.5 : 0.3);
		test_function(&job, w, caller, CLASS_HOST, 0.1);
		test_function(&job, w, test_frame(&job, w, caller, KIND_PYTHON, "small"),
			      CLASS_HOST, 0.001);
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.share_cnt, 2);
	assert_string_equal(report.shares[0].name, "load");
	assert_string_equal(report.shares[0].caller, "train");
	assert_true(report.shares[0].frac > 0.399 && report.shares[0].frac < 0.401);
	assert_true(report.shares[0].ms_per_iteration > 39.9 &&
		    report.shares[0].ms_per_iteration < 40.1);
	assert_string_equal(report.shares[1].name, "train");
	assert_string_equal(report.shares[1].caller, "");
	report_done(&report);
	test_job_done(&job);
}

static void only_the_largest_functions_are_listed(void **state)
{
	struct test_job job = { 0 };
	struct report report;
	static char names[30][8];

	(void)state;
	test_job_init(&job, 1, 1000, 10);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "f%d", i);
		test_function(&job, 0, test_frame(&job, 0, FRAME_NONE, KIND_PYTHON, names[i]),
			      CLASS_HOST, 0.015 + 0.001 * ((i * 7) % 30));
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.share_cnt, SHARES_MAX);
	for (size_t i = 1; i < report.share_cnt; i++)
		assert_true(report.shares[i - 1].frac >= report.shares[i].frac);
	assert_true(report.shares[0].frac > 0.043);
	assert_true(report.shares[SHARES_MAX - 1].frac > 0.024);
	report_done(&report);
	test_job_done(&job);
}

static void calls_from_several_places_count_together(void **state)
{
	static const char *const callers[] = { "layer0", "layer1", "layer2" };
	struct test_job job = { 0 };
	struct report report;

	(void)state;
	test_job_init(&job, 1, 1000, 10);
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		uint32_t caller = test_frame(&job, 0, FRAME_NONE, KIND_PYTHON, callers[i]);
		uint32_t frame = test_frame(&job, 0, caller, KIND_OPERATOR, "aten::addmm");

		test_function(&job, 0, frame, CLASS_HOST, 0.007 + 0.001 * (double)i);
	}
	report = test_localize(&job, NULL);
	assert_int_equal(report.share_cnt, 1); /* each alone is less than what is listed */
	assert_string_equal(report.shares[0].name, "aten::addmm");
	assert_string_equal(report.shares[0].caller, "layer2");
	assert_int_equal(report.shares[0].place_cnt, 3);
	assert_float_equal(report.shares[0].frac, 0.024, 0.001);
	report_done(&report);
	test_job_done(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_window_without_a_finding_is_healthy),
		cmocka_unit_test(a_rank_late_at_the_end_of_a_recorded_window_is_not_healthy),
		cmocka_unit_test(a_rank_at_another_pace_is_not_healthy),
		cmocka_unit_test(one_rank_of_several_is_not_healthy),
		cmocka_unit_test(hosts_that_nothing_relates_are_not_healthy),
		cmocka_unit_test(a_job_whose_devices_hardly_compute_is_not_healthy),
		cmocka_unit_test(few_iterations_may_hide_what_hosts_do),
		cmocka_unit_test(a_slowdown_without_a_finding_is_slow_and_says_how_much),
		cmocka_unit_test(a_slowdown_of_threads_without_cpus_says_so),
		cmocka_unit_test(a_slight_slowdown_without_a_sure_finding_may_be_the_machines),
		cmocka_unit_test(a_requested_window_of_a_slow_job_is_slow),
		cmocka_unit_test(a_window_after_the_slowdown_shows_nothing_of_it),
		cmocka_unit_test(a_slow_job_with_a_finding_is_abnormal_and_with_a_weak_one_slow),
		cmocka_unit_test(a_window_slower_than_its_past_is_not_healthy),
		cmocka_unit_test(missing_ranks_are_named_with_what_the_others_wait),
		cmocka_unit_test(what_costs_less_than_a_missing_rank_is_not_sure),
		cmocka_unit_test(ranks_left_out_by_choice_matter_where_others_wait),
		cmocka_unit_test(a_late_rank_without_a_cause_is_named_and_not_healthy),
		cmocka_unit_test(one_iteration_is_enough_where_ranks_meet_often),
		cmocka_unit_test(weak_evidence_comes_behind_a_missing_rank),
		cmocka_unit_test(what_to_record_instead_is_said),
		cmocka_unit_test(a_rank_that_chance_makes_very_late_is_named_and_not_healthy),
		cmocka_unit_test(a_check_up_of_a_job_far_from_its_best_pace_is_not_healthy),
		cmocka_unit_test(ranks_without_peers_and_collectives_are_not_called_healthy),
		cmocka_unit_test(one_long_iteration_in_a_few_leaves_it_open),
		cmocka_unit_test(lost_records_and_unmatched_collectives_leave_it_open),
		cmocka_unit_test(without_memory_nothing_is_concluded),
		cmocka_unit_test(the_functions_that_hold_the_window_are_listed_by_size),
		cmocka_unit_test(only_the_largest_functions_are_listed),
		cmocka_unit_test(calls_from_several_places_count_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
