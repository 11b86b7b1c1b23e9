/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampleddiagnosis.h"

#include "base/test_alloc.h"
#include "model/thresholds.h"
#include "sampled/test_sampledjob.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct test_sampledjob made;

static struct report diagnose(void)
{
	struct report report = { 0 };

	arena_init(&report.arena);
	assert_int_equal(sampleddiagnosis_make(&made.job, &report), 0);
	return report;
}

/* Iterations of ten rounds: rank `culprit` does `what` in the first six, and the others wait. */
struct fault {
	size_t culprit;
	enum test_does what;
};

static enum test_does faulty(size_t rank, uint32_t round, void *context)
{
	const struct fault *fault = context;

	if (round % 10 < 6)
		return rank == fault->culprit ? fault->what : TEST_WAITS;
	return round % 10 < 9 ? TEST_COMPUTES : TEST_STEPS;
}

static void make_faulty(size_t ranks, size_t culprit, enum test_does what,
			const double *queued_frac)
{
	struct fault fault = { culprit, what };

	test_sampledjob_make(&made, ranks, 300, faulty, &fault, queued_frac);
}

static bool has_evidence(const struct finding *finding, const char *part)
{
	for (size_t i = 0; i < finding->evidence_cnt; i++)
		if (strstr(finding->evidence[i], part) != NULL)
			return true;
	return false;
}

static void a_rank_that_is_in_a_function_while_others_wait_is_accused(void **state)
{
	struct report report;
	const struct finding *finding;

	(void)state;
	make_faulty(3, 1, TEST_SLOW, NULL);
	report = diagnose();
	finding = &report.findings[0];
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(finding->cause, "cpu-bound-python");
	assert_string_equal(finding->name, "train.py(12): slow");
	assert_int_equal(finding->rank_cnt, 1);
	assert_int_equal(finding->ranks[0], 1);
	assert_int_equal(finding->victim_cnt, 2);
	assert_int_equal(finding->stack_cnt, 3);
	assert_string_equal(finding->stack[1], "train.py(20): train_step");
	assert_int_equal(finding->confidence, CONFIDENCE_HIGH);
	assert_true(finding->beta.value > 0.55 && finding->beta.value < 0.65);
	assert_true(has_evidence(finding, "ranks 0, 2 wait for rank 1 in 60 %"));
	assert_true(report.wait_cnt == 2 && report.waits[0].from == 1);
	assert_true(report.flame.node_cnt > 2 && report.flame.rank == 1);
	arena_done(&report.arena);
}

static void a_function_in_which_it_is_blocked_is_a_stall(void **state)
{
	struct report report;

	(void)state;
	make_faulty(4, 3, TEST_STALLS, NULL);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_string_equal(report.findings[0].cause, "host-stall");
	assert_int_equal(report.findings[0].ranks[0], 3);
	assert_true(has_evidence(&report.findings[0], "in clock_nanosleep"));
	arena_done(&report.arena);
}

static void a_slow_loader_is_named_by_the_function_of_its_workers(void **state)
{
	struct report report;

	(void)state;
	make_faulty(3, 2, TEST_LOADS, NULL);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	assert_string_equal(report.findings[0].name,
			    "train.py(8): read_shard (its loader's worker processes)");
	arena_done(&report.arena);
}

static void a_rank_that_waits_for_a_cpu_is_suspected_not_accused(void **state)
{
	static const double queued[] = { 0.05, 0.5, 0.05 };
	struct report report;

	(void)state;
	make_faulty(3, 1, TEST_SLOW, queued);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.finding_cnt, 0);
	assert_true(report.has_suspect);
	assert_int_equal(report.suspect, 1);
	assert_non_null(strstr(report.reason, "waits for a CPU"));
	arena_done(&report.arena);
}

/* The culprit does no more of anything than its peers: it does it later. */
static enum test_does late(size_t rank, uint32_t round, void *context)
{
	(void)context;
	if (round % 10 < 4)
		return rank == 0 ? TEST_COMPUTES : TEST_WAITS;
	return round % 10 < 8 ? (rank == 0 ? TEST_STEPS : TEST_SLOW) : TEST_LOADS;
}

static void a_late_rank_without_a_function_of_its_own_is_suspected(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 3, 300, late, NULL, NULL);
	report = diagnose();
	assert_int_not_equal(report.verdict, VERDICT_HEALTHY);
	if (report.verdict == VERDICT_ABNORMAL)
		assert_int_equal(report.findings[0].ranks[0], 0);
	arena_done(&report.arena);
}

/* Each rank is the last one by turns, for some rounds, with a random function. */
struct healthy {
	uint64_t seed;
	uint32_t until, last;
	enum test_does does;
};

static enum test_does by_turns(size_t rank, uint32_t round, void *context)
{
	const struct healthy *h = context;
	/* The same for all ranks of a round, other lengths for each seed. */
	uint64_t x = (round / (3 + h->seed % 9) + 1) * 0x9e3779b97f4a7c15u ^ h->seed << 17;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
	x ^= x >> 29;
	if (x % 3 == 0)
		return rank == (x >> 8) % made.job.cnt ? TEST_SLOW : TEST_WAITS;
	return (x >> 16 ^ rank * 7 ^ round * 13) % 5 < 3 ? TEST_COMPUTES : TEST_STEPS;
}

static void ranks_that_are_last_by_turns_are_never_accused(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct healthy healthy = { .seed = seed };
		struct report report;

		made.job.cnt = 2 + seed % 4;
		test_sampledjob_make(&made, 2 + seed % 4, 300, by_turns, &healthy, NULL);
		report = diagnose();
		assert_int_equal(report.finding_cnt, 0);
		assert_int_equal(report.verdict, VERDICT_NOTHING_FOUND);
		assert_non_null(strstr(report.reason, "does not show that the job is well"));
		arena_done(&report.arena);
	}
}

static enum test_does in_one_part(size_t rank, uint32_t round, void *context)
{
	(void)context;
	if (round > 100 && round < 200)
		return rank == 1 ? TEST_SLOW : TEST_WAITS;
	return TEST_COMPUTES;
}

static void a_moment_of_the_window_is_no_finding(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 3, 300, in_one_part, NULL, NULL);
	report = diagnose();
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_NOTHING_FOUND);
	arena_done(&report.arena);
}

static enum test_does loads_often(size_t rank, uint32_t round, void *context)
{
	(void)rank;
	return round % 10 < *(const uint32_t *)context ? TEST_LOADS : TEST_COMPUTES;
}

static void a_wait_for_input_is_a_finding_from_a_quarter_of_the_time_on(void **state)
{
	uint32_t often = 6, seldom = 2;
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 1, 300, loads_often, &often, NULL);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_ABNORMAL);
	assert_string_equal(report.findings[0].cause, "slow-data-loading");
	assert_true(report.findings[0].all_workers);
	arena_done(&report.arena);
	test_sampledjob_make(&made, 1, 300, loads_often, &seldom, NULL);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_NOTHING_FOUND);
	arena_done(&report.arena);
}

static void loaders_that_lack_cpus_are_not_slow(void **state)
{
	uint32_t often = 6;
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 1, 300, loads_often, &often, NULL);
	made.ranks[0].children_queued_frac = 0.5;
	report = diagnose();
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "wait for a CPU"));
	arena_done(&report.arena);
	make_faulty(3, 2, TEST_LOADS, NULL);
	made.ranks[2].children_queued_frac = 0.5;
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.suspect, 2);
	arena_done(&report.arena);
}

static enum test_does pipelined(size_t rank, uint32_t round, void *context)
{
	(void)context;
	return rank == 2 && round % 10 < 9 ? TEST_SLOW : TEST_RECEIVES;
}

static void stages_that_differ_by_design_are_not_accused(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 3, 300, pipelined, NULL, NULL);
	report = diagnose();
	assert_int_equal(report.finding_cnt, 0);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(report.suspect, 2);
	assert_non_null(strstr(report.reason, "different work"));
	arena_done(&report.arena);
}

static void too_few_samples_are_inconclusive(void **state)
{
	struct fault fault = { 1, TEST_SLOW };
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 3, SAMPLED_ROUNDS_MIN - 1, faulty, &fault, NULL);
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "too few"));
	arena_done(&report.arena);
}

static enum test_does alike(size_t rank, uint32_t round, void *context)
{
	(void)rank;
	(void)context;
	return round % 10 < 3 ? TEST_WAITS : round % 10 < 6 ? TEST_STEPS : TEST_COMPUTES;
}

static void ranks_of_other_hosts_leave_the_answer_open(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 2, 300, alike, NULL, NULL);
	made.job.world_size = 4;
	report = diagnose();
	assert_int_equal(report.verdict, VERDICT_INCOMPLETE);
	assert_int_equal(report.missing_cnt, 2);
	assert_int_equal(report.missing[0], 2);
	arena_done(&report.arena);
}

static void iterations_are_known_where_a_phase_cannot_be_missed(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 2, 300, alike, NULL, NULL);
	report = diagnose();
	assert_true(fabs(report.iteration_ms - 500.0) < 1.0);
	arena_done(&report.arena);
	/* One round of ten: phases as short may be missed. */
	make_faulty(3, 1, TEST_SLOW, NULL);
	report = diagnose();
	assert_true(isnan(report.iteration_ms));
	arena_done(&report.arena);
}

static enum test_does stuck(size_t rank, uint32_t round, void *context)
{
	const size_t *moving = context;

	if (rank == *moving)
		return round % 2 == 0 ? TEST_SLOW : TEST_COMPUTES;
	return rank == 0 ? TEST_STALLS : TEST_WAITS;
}

static void a_job_of_which_nothing_moves_stands(void **state)
{
	size_t none = 9, one = 0;
	struct fault fault = { 1, TEST_SLOW };

	(void)state;
	test_sampledjob_make(&made, 3, 300, stuck, &none, NULL);
	assert_int_equal(sampleddiagnosis_stands(&made.job), 1);
	test_sampledjob_make(&made, 3, 300, stuck, &one, NULL);
	assert_int_equal(sampleddiagnosis_stands(&made.job), 1);
	test_sampledjob_make(&made, 3, 100, stuck, &none, NULL);
	assert_int_equal(sampleddiagnosis_stands(&made.job), 0);
	test_sampledjob_make(&made, 3, 300, faulty, &fault, NULL);
	assert_int_equal(sampleddiagnosis_stands(&made.job), 0);
}

static enum test_does unseen(size_t rank, uint32_t round, void *context)
{
	(void)context;
	return rank == 1 || round % 3 == 0 ? TEST_UNSEEN : TEST_COMPUTES;
}

static void rounds_in_which_a_rank_was_not_seen_say_nothing(void **state)
{
	struct report report;

	(void)state;
	test_sampledjob_make(&made, 3, 300, unseen, NULL, NULL);
	report = diagnose();
	assert_int_equal(report.finding_cnt, 0);
	arena_done(&report.arena);
}

static void a_failed_allocation_is_reported(void **state)
{
	(void)state;
	make_faulty(3, 1, TEST_LOADS, NULL);
	for (int n = 0; n < 5000; n++) {
		struct report report = { 0 };
		int error;

		arena_init(&report.arena);
		allocations_left = n;
		error = sampleddiagnosis_make(&made.job, &report);
		allocations_left = -1;
		arena_done(&report.arena);
		if (error == 0)
			return;
		assert_int_equal(error, -ENOMEM);
	}
	fail_msg("it never succeeds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_is_in_a_function_while_others_wait_is_accused),
		cmocka_unit_test(a_function_in_which_it_is_blocked_is_a_stall),
		cmocka_unit_test(a_slow_loader_is_named_by_the_function_of_its_workers),
		cmocka_unit_test(a_rank_that_waits_for_a_cpu_is_suspected_not_accused),
		cmocka_unit_test(a_late_rank_without_a_function_of_its_own_is_suspected),
		cmocka_unit_test(ranks_that_are_last_by_turns_are_never_accused),
		cmocka_unit_test(a_moment_of_the_window_is_no_finding),
		cmocka_unit_test(a_wait_for_input_is_a_finding_from_a_quarter_of_the_time_on),
		cmocka_unit_test(loaders_that_lack_cpus_are_not_slow),
		cmocka_unit_test(stages_that_differ_by_design_are_not_accused),
		cmocka_unit_test(too_few_samples_are_inconclusive),
		cmocka_unit_test(ranks_of_other_hosts_leave_the_answer_open),
		cmocka_unit_test(iterations_are_known_where_a_phase_cannot_be_missed),
		cmocka_unit_test(a_job_of_which_nothing_moves_stands),
		cmocka_unit_test(rounds_in_which_a_rank_was_not_seen_say_nothing),
		cmocka_unit_test(a_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
