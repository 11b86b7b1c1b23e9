/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/doubt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct doubt doubt;
static struct finding finding;
static const int ranks[] = { 1, 3 };

static int begin(_unused_ void **state)
{
	doubt = (struct doubt){ 0 };
	return 0;
}

static int end(_unused_ void **state)
{
	doubt_drop(&doubt);
	return 0;
}

/* The report of a check-up that accuses ranks[first..first + cnt). */
static struct report accuse(size_t first, size_t cnt, const char *cause)
{
	struct report report = { .verdict = VERDICT_ABNORMAL, .reason = "as it was" };
	struct finding *f;

	arena_init(&report.arena);
	f = arena_alloc(&report.arena, sizeof(*f));
	assert_non_null(f);
	*f = finding;
	f->cause = cause;
	f->name = cnt == 1 ? "one" : "both";
	f->title = first == 0 ? "the first" : "the second";
	f->ranks = ranks + first;
	f->rank_cnt = cnt;
	report.findings = f;
	report.finding_cnt = 1;
	return report;
}

static void assert_published(struct report report, enum verdict verdict)
{
	assert_false(doubt_keeps(&doubt, &report, 7));
	assert_int_equal(report.verdict, verdict);
	assert_false(doubt.present);
	arena_done(&report.arena);
}

static void assert_kept(struct report report)
{
	assert_true(doubt_keeps(&doubt, &report, 7));
	assert_true(doubt.present);
}

static void a_finding_is_told_when_a_second_window_agrees(_unused_ void **state)
{
	assert_kept(accuse(0, 1, "host-stall"));
	assert_published(accuse(0, 1, "cpu-bound-python"),
			 VERDICT_ABNORMAL);	 /* the same function */
	assert_kept(accuse(0, 2, "host-stall")); /* the next check-up begins anew */
}

static void a_window_without_a_finding_ends_the_doubt(_unused_ void **state)
{
	struct report healthy = { .verdict = VERDICT_HEALTHY };

	arena_init(&healthy.arena);
	assert_kept(accuse(0, 1, "host-stall"));
	assert_published(healthy, VERDICT_HEALTHY);
}

static void a_window_that_suspects_the_same_rank_tells_what_the_first_found(_unused_ void **state)
{
	for (int suspect = 1; suspect <= 2; suspect++) {
		struct report unclear = { .verdict = VERDICT_INCONCLUSIVE,
					  .reason = "rank 1 is late",
					  .suspect = suspect,
					  .has_suspect = true };

		arena_init(&unclear.arena);
		assert_kept(accuse(0, 1, "load-imbalance"));
		assert_false(doubt_keeps(&doubt, &unclear, 8));
		assert_string_equal(unclear.reason,
				    suspect == 1
					    ? "rank 1 is late; the window before had: the first"
					    : "rank 1 is late");
		arena_done(&unclear.arena);
	}
}

static void a_window_that_lacks_ranks_tells_what_the_first_found(_unused_ void **state)
{
	struct report incomplete = { .verdict = VERDICT_INCOMPLETE, .reason = "no rank 1" };

	arena_init(&incomplete.arena);
	assert_kept(accuse(0, 1, "host-stall"));
	assert_false(doubt_keeps(&doubt, &incomplete, 7));
	assert_string_equal(incomplete.reason, "no rank 1; the window before had: the first");
	arena_done(&incomplete.arena);
}

static void windows_that_contradict_one_another_are_inconclusive(_unused_ void **state)
{
	struct report last = accuse(0, 2, "host-stall");

	assert_kept(accuse(0, 1, "host-stall"));
	assert_kept(accuse(1, 1, "host-stall"));
	assert_false(doubt_keeps(&doubt, &last, 9));
	assert_int_equal(last.verdict, VERDICT_INCONCLUSIVE);
	assert_int_equal(last.finding_cnt, 0);
	assert_non_null(strstr(last.reason, "(the second; then the first)"));
	arena_done(&last.arena);
}

static void three_windows_that_accuse_the_same_rank_agree_on_it(_unused_ void **state)
{
	static const char *const causes[] = { "host-stall", "cpu-starvation", "load-imbalance" };
	struct report reports[3];

	for (size_t i = 0; i < 3; i++) {
		struct finding *f;

		reports[i] = accuse(0, 1, causes[i]);
		f = arena_alloc(&reports[i].arena, sizeof(*f));
		assert_non_null(f);
		*f = reports[i].findings[0];
		f->name = causes[i];
		reports[i].findings = f;
	}
	assert_kept(reports[0]);
	assert_kept(reports[1]);
	assert_published(reports[2], VERDICT_ABNORMAL);
}

static void a_report_that_waits_can_be_taken_once(_unused_ void **state)
{
	struct report report;
	uint64_t number;

	assert_false(doubt_take(&doubt, &report, &number));
	assert_kept(accuse(0, 1, "host-stall"));
	assert_true(doubt_take(&doubt, &report, &number));
	assert_int_equal(number, 7);
	assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(report.reason, "one window only"));
	assert_int_equal(report.findings[0].confidence, CONFIDENCE_LOW);
	assert_false(doubt_take(&doubt, &report, &number));
	arena_done(&report.arena);
}

static void the_first_window_of_a_slowdown_waits_if_only_the_past_accuses(void **state)
{
	struct moment moment = { 0 };
	struct report past = accuse(0, 1, "more-than-before"), peers = accuse(0, 1, "host-stall");
	struct report vague = accuse(0, 1, "unexplained-difference");
	struct report taken;
	uint64_t number;

	(void)state;
	assert_false(moment_waits(&moment, &peers, 0));
	assert_true(moment_waits(&moment, &vague, 0));
	arena_done(&vague.arena);
	past.failure_cnt = 1;
	assert_false(moment_waits(&moment, &past, 0));
	past.failure_cnt = 0;
	assert_true(moment_waits(&moment, &past, 0));
	moment_keep(&moment, &past, 9);
	assert_false(moment_waits(&moment, &past, 0)); /* of the second window */
	assert_true(moment_take(&moment, &taken, &number));
	assert_int_equal(number, 9);
	assert_false(moment_take(&moment, &taken, &number));
	moment_end(&moment);
	taken.finding_cnt = 0;
	taken.verdict = VERDICT_SLOW;
	assert_true(moment_waits(&moment, &taken, 0)); /* of the next slowdown */
	taken.verdict = VERDICT_HEALTHY;
	assert_false(moment_waits(&moment, &taken, 0));
	moment_keep(&moment, &taken, 10);
	moment_end(&moment);
	assert_false(moment_take(&moment, &taken, &number));
	arena_done(&peers.arena);
}

static void want_of_cpus_waits_for_a_second_window(_unused_ void **state)
{
	struct moment moment = { 0 };
	struct report starved = accuse(0, 1, "cpu-starvation");

	assert_true(moment_waits(&moment, &starved, 0));
	moment_keep(&moment, &starved, 3);
	assert_false(moment_waits(&moment, &starved, 0));
	moment_end(&moment);
}

static void a_slower_machine_is_reported_once_it_lasts(_unused_ void **state)
{
	struct moment moment = { 0 };
	struct report slow = accuse(0, 1, "none"), again = accuse(0, 1, "none");

	slow.finding_cnt = again.finding_cnt = 0;
	slow.verdict = again.verdict = VERDICT_SLOW;
	slow.alike_factor = again.alike_factor = 1.5;
	assert_true(moment_waits(&moment, &slow, 2 * NSEC_PER_SEC));
	moment_keep(&moment, &slow, 3);
	assert_true(moment_waits(&moment, &again, MOMENT_ALIKE_NS - 1));
	assert_false(moment_waits(&moment, &again, MOMENT_ALIKE_NS));
	again.alike_factor = 0; /* a place shows now */
	assert_false(moment_waits(&moment, &again, 2 * NSEC_PER_SEC));
	moment_end(&moment);
	arena_done(&again.arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_finding_is_told_when_a_second_window_agrees),
		TEST(a_window_without_a_finding_ends_the_doubt),
		TEST(a_window_that_suspects_the_same_rank_tells_what_the_first_found),
		TEST(a_window_that_lacks_ranks_tells_what_the_first_found),
		TEST(windows_that_contradict_one_another_are_inconclusive),
		TEST(three_windows_that_accuse_the_same_rank_agree_on_it),
		TEST(a_report_that_waits_can_be_taken_once),
		TEST(the_first_window_of_a_slowdown_waits_if_only_the_past_accuses),
		TEST(want_of_cpus_waits_for_a_second_window),
		TEST(a_slower_machine_is_reported_once_it_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
