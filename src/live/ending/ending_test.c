/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/ending.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

static const struct history quiet_past;

/* Four ranks of 200 iterations of 10 ms; the job ended well. */
static struct wire_state workers[4];
static struct ending_facts facts;
static struct lives lives;

static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		workers[i] = test_worker(i, 200, 10 * MS);
	lives = (struct lives){ 0 };
	facts = (struct ending_facts){ .states = workers,
				       .cnt = 4,
				       .history = &quiet_past,
				       .lives = &lives,
				       .last_mark_ns = TEST_NOW_NS - 20 * NSEC_PER_SEC };
	return 0;
}

static void expect(enum verdict verdict, const char *text)
{
	struct report report;

	assert_int_equal(ending_report(&facts, &report), 0);
	assert_string_equal(verdict_name(report.verdict), verdict_name(verdict));
	if (strstr(report.reason, text) == NULL)
		assert_string_equal(report.reason, text);
	/* No other verdict may say that all is well. */
	if (verdict_is_bad(verdict))
		assert_null(strstr(report.reason, "no slowdown"));
	arena_done(&report.arena);
}

static void expect_without(const char *text)
{
	struct report report;

	assert_int_equal(ending_report(&facts, &report), 0);
	assert_null(strstr(report.reason, text));
	arena_done(&report.arena);
}

/* Worker i ends; raised: NULL: killed; "": by itself. */
static void end_worker(int i, const char *raised)
{
	workers[i].phase = PHASE_GONE;
	workers[i].pid = 70 + (uint32_t)i;
	workers[i].bye = raised != NULL;
	if (raised != NULL)
		(void)strncpy(workers[i].raised, raised, sizeof(workers[i].raised) - 1);
	lives_note_end(&lives, &workers[i], 200);
}

static void set_slow(uint64_t since_step)
{
	facts.slow = true;
	facts.pace = (struct jobstate_pace){ .slow_since_step = since_step,
					     .now_ns = 25 * MS,
					     .baseline_ns = 10 * MS,
					     .best_ns = 10 * MS };
}

static void a_quiet_job_is_healthy(void **state)
{
	(void)state;
	expect(VERDICT_HEALTHY, "200 iterations watched, no slowdown");
}

static void a_job_that_fails_names_the_rank_that_raised(void **state)
{
	(void)state;
	facts.end.exit_status = 1;
	end_worker(2, "ValueError");
	end_worker(0, NULL); /* torchrun ends the others */
	end_worker(1, NULL);
	expect(VERDICT_FAILED, "(exit 1) after 200 steps; rank 2 (pid 72) was the first to end, "
			       "at step 200, by ValueError");
	expect_without("kernel log");
}

static void a_job_whose_rank_was_killed_names_it(void **state)
{
	(void)state;
	facts.end.exit_status = 1;
	end_worker(1, NULL);
	end_worker(0, "RuntimeError"); /* Connection closed by peer */
	expect(VERDICT_FAILED, "rank 1 (pid 71) was the first to end");
	expect(VERDICT_FAILED, "kernel log");
}

static void a_job_that_calls_exit_itself_fails_too(void **state)
{
	(void)state;
	facts.end.exit_status = 3;
	end_worker(3, "");
	end_worker(1, NULL);
	expect(VERDICT_FAILED, "(exit 3) after 200 steps; rank 3 (pid 73) was the first to end, at "
			       "step 200, by itself");
}

static void a_rank_that_was_done_is_named_beside_one_that_raises_later(void **state)
{
	(void)state;
	facts.end.exit_status = 1;
	end_worker(0, "");
	end_worker(1, "KeyError");
	expect(VERDICT_FAILED, "rank 0 (pid 70) was the first to end, at step 200, by itself; rank "
			       "1 (pid 71) then ended, at step 200, by KeyError");
}

static void a_command_killed_by_a_signal_fails_by_it(void **state)
{
	(void)state;
	facts.end.exit_status = 128 + SIGSEGV;
	facts.end.signal = SIGSEGV;
	expect(VERDICT_FAILED, "(SIGSEGV) after 200 steps");
	facts.cnt = 0;
	expect(VERDICT_FAILED, "(SIGSEGV) before any training process connected");
}

/* The kernel says how worker i ended: as of waitpid(). */
static void set_exit(int i, int wait_status)
{
	workers[i].exit_known = 1;
	workers[i].exit_status = wait_status;
	lives_note_end(&lives, &workers[i], 200);
}

static void the_exit_code_or_signal_of_the_first_rank_is_said(void **state)
{
	(void)state;
	facts.end.exit_status = 1;
	end_worker(2, NULL);
	set_exit(2, SIGSEGV);
	expect(VERDICT_FAILED, "rank 2 (pid 72) was the first to end, at step 200, by SIGSEGV: see "
			       "its own output");
	expect_without("kernel log");
	set_exit(2, SIGKILL);
	expect(VERDICT_FAILED,
	       "by SIGKILL: see its own output, and if that says nothing, the kernel "
	       "log");
	set_exit(2, 3 << 8);
	expect(VERDICT_FAILED, "at step 200, with exit code 3: see its own output");
	expect_without("kernel log");
}

/* Rank 1 raises, the launcher ends the others and starts all again. */
static void restart(void)
{
	uint32_t fresh = workers[1].worker + 10;

	end_worker(1, "ValueError");
	end_worker(0, NULL);
	assert_true(lives_note_successor(&lives, &workers[1], fresh, 200));
	for (int i = 0; i < 4; i++) {
		workers[i] = test_worker(i, 200, 10 * MS);
		workers[i].worker = workers[i].arrival = fresh + (uint32_t)i;
	}
}

static void a_job_that_was_restarted_and_ended_well_has_failed_before(void **state)
{
	(void)state;
	restart();
	expect(VERDICT_FAILED,
	       "and was restarted 1 time: rank 1 (pid 71) was the first to end, at step 200, by "
	       "ValueError: see its own output; the last life ran 200 iterations");
	expect_without("too few");
	for (int i = 0; i < 4; i++)
		workers[i].iterations = 12;
	expect(VERDICT_FAILED, "; the last life ran 12 iterations, too few to judge");
	restart();
	expect(VERDICT_FAILED, "and was restarted 2 times: rank 1 (pid 71) was the first to end");
	expect(VERDICT_FAILED, "; the last time rank 1 (pid 71) was the first to end");
	set_slow(150);
	expect(VERDICT_FAILED, "; it was slow: 10.0 -> 25.0 ms since step 150 (2.5x)");
	facts.end.exit_status = 1;
	expect(VERDICT_FAILED,
	       "(exit 1) after 200 steps; before that it was restarted 2 times: rank");
}

static void a_rank_that_failed_is_told_though_the_launcher_ends_well(void **state)
{
	(void)state;
	end_worker(1, NULL);
	set_exit(1, SIGTERM); /* when all was done */
	expect(VERDICT_HEALTHY, "200 iterations watched");
	workers[3].step = 210;
	expect(VERDICT_FAILED,
	       "in part: rank 1 (pid 71) ended, at step 200, by SIGTERM: see its own "
	       "output; the others went on to step 210");
	workers[3].step = 200;
	set_exit(1, 1 << 8); /* Ray ends its workers so */
	expect(VERDICT_HEALTHY, "200 iterations watched");
	workers[1].bye = 1; /* sys.exit(1) */
	set_exit(1, 1 << 8);
	expect(VERDICT_FAILED, "in part: rank 1 (pid 71) ended, at step 200, with exit code 1");
	set_exit(1, SIGABRT);
	expect(VERDICT_FAILED, "in part: rank 1 (pid 71) ended, at step 200, by SIGABRT");
}

static void a_rank_that_leaves_long_before_the_others_makes_the_job_incomplete(void **state)
{
	(void)state;
	end_worker(1, "");
	set_exit(1, 0);
	workers[0].step = 229; /* uneven data */
	expect(VERDICT_HEALTHY, "");
	workers[0].step = 240;
	expect(VERDICT_INCOMPLETE,
	       "rank 1 (pid 71) left, at step 200, with exit code 0; the others "
	       "went on to step 240");
	workers[1].world_size = 1; /* processes that know nothing of each other */
	set_exit(1, 0);
	expect(VERDICT_HEALTHY, "");
}

static void a_failed_job_that_was_slow_or_stuck_before_says_so(void **state)
{
	(void)state;
	facts.end.exit_status = 1;
	set_slow(150);
	expect(VERDICT_FAILED, "it was slow: 10.0 -> 25.0 ms since step 150 (2.5x)");
	facts.stuck = true;
	expect(VERDICT_FAILED, "no iteration had ended for a while before that");
}

static void a_job_ended_by_the_user_has_not_failed(void **state)
{
	(void)state;
	facts.end = (struct job_end){ .exit_status = 130,
				      .signal = SIGINT,
				      .asked_signal = SIGINT,
				      .asked_ns = TEST_NOW_NS - 20 * NSEC_PER_SEC };
	end_worker(1, "KeyboardInterrupt");
	expect(VERDICT_HEALTHY,
	       "200 iterations watched, no slowdown; then ended by SIGINT (Ctrl-C)");
	expect_without("kernel log");
	facts.end.asked_signal = SIGTERM;
	expect(VERDICT_HEALTHY, "then ended by SIGTERM");
	set_slow(150);
	expect(VERDICT_SLOW, "10.0 -> 25.0 ms since step 150 (2.5x), until the end at step 200; "
			     "then ended by SIGTERM");
	facts.stuck = true;
	expect(VERDICT_STUCK, "no iteration ended after step 200");
}

static void a_job_ended_in_silence_is_not_healthy(void **state)
{
	(void)state;
	facts.end = (struct job_end){ .exit_status = 130,
				      .asked_signal = SIGINT,
				      .asked_ns = TEST_NOW_NS };
	expect(VERDICT_INCONCLUSIVE, "but none ended in the last 20 s; then ended by SIGINT");
	end_worker(1, "");
	set_exit(1, 0);
	expect(VERDICT_INCONCLUSIVE,
	       "but none ended in the last 20 s; rank 1 (pid 71) had left, at "
	       "step 200, with exit code 0; then ended by SIGINT");
	for (int i = 0; i < 4; i++)
		workers[i].iteration_ns = 5 * NSEC_PER_SEC; /* that is usual */
	expect(VERDICT_HEALTHY, "");
}

static void a_job_that_is_slow_at_its_end_is_slow(void **state)
{
	(void)state;
	set_slow(150);
	expect(VERDICT_SLOW, "10.0 -> 25.0 ms since step 150 (2.5x), until the end at step 200");
	facts.pace.now_ns = 11 * MS;
	expect(VERDICT_INCONCLUSIVE,
	       "10.0 -> 11.0 ms since step 150 (1.1x), until the end at step 200: the speed of a "
	       "machine that other work shares may vary by as much");
}

static void a_job_that_becomes_slow_just_before_its_end_is_not_healthy(void **state)
{
	(void)state;
	set_slow(190);
	facts.slow = false; /* not for long enough */
	expect(VERDICT_INCONCLUSIVE,
	       "200 iterations watched, but they became slower shortly before "
	       "the end, 10.0 -> 25.0 ms since step 190 (2.5x)");
	facts.pace.now_ns = 14 * MS;
	expect(VERDICT_HEALTHY, "200 iterations watched, of 14.0 ms at the end and 10.0 ms at "
				"their best (1.4x), which is within what their times vary by");
}

static void a_job_far_from_its_best_that_noise_may_explain_is_not_healthy(void **state)
{
	(void)state;
	facts.pace = (struct jobstate_pace){ .baseline_ns = 10 * MS, .now_ns = 25 * MS };
	expect(VERDICT_INCONCLUSIVE, "200 iterations watched, of 25.0 ms at the end and 10.0 ms at "
				     "their best (2.5x), but their times vary too much");
	facts.unclear = "rank 3 is last by 11 ms";
	facts.pace.now_ns = 15 * MS;
	expect(VERDICT_INCONCLUSIVE, "(1.5x), but their times vary too much");
	expect(VERDICT_INCONCLUSIVE, "no verdict either: rank 3 is last by 11 ms");
	facts.unclear = "";
	facts.pace.now_ns = 11 * MS;
	expect(VERDICT_HEALTHY, "200 iterations watched, no slowdown");
}

static void a_job_whose_check_up_has_no_verdict_is_not_healthy(void **state)
{
	(void)state;
	facts.unclear = "rank 3 lost 48 % of what it was to record";
	expect(VERDICT_INCONCLUSIVE, "200 iterations watched, no slowdown, but the check-up has no "
				     "verdict: rank 3 lost 48 %");
	facts.unclear = "";
	expect(VERDICT_HEALTHY, "200 iterations watched, no slowdown");
}

static void a_job_whose_ranks_were_never_compared_is_not_healthy(void **state)
{
	(void)state;
	facts.uncompared = true;
	expect(VERDICT_INCONCLUSIVE, "200 iterations watched, no slowdown, but the ranks were not "
				     "compared");
	facts.cnt = 1; /* no other rank to compare it with */
	workers[0].world_size = 1;
	expect(VERDICT_HEALTHY, "200 iterations watched, no slowdown");
}

static void a_report_that_stays_is_followed_by_how_long_it_lasted(void **state)
{
	struct str text = { 0 };

	(void)state;
	facts.end.asked_signal = SIGINT;
	ending_append_lasting(&facts, &text);
	assert_string_equal(str_borrow(&text), "; it lasted until the end at step 200; then ended "
					       "by SIGINT (Ctrl-C)");
	str_done(&text);
}

static void a_part_of_a_job_is_never_healthy(void **state)
{
	(void)state;
	facts.cnt = 2;
	expect(VERDICT_INCOMPLETE, "2 of 4 ranks were watched, those of this run; the others are "
				   "unknown; 200 iterations watched");
	facts.cnt = 4;
	workers[3].rank = 2; /* an elastic restart: one rank twice */
	expect(VERDICT_INCOMPLETE, "3 of 4 ranks were watched");
}

static void a_hook_that_is_off_leaves_it_incomplete(void **state)
{
	(void)state;
	workers[1].silent = 1;
	expect(VERDICT_INCOMPLETE, "the hook switched itself off in 1 of 4 workers");
}

static void a_host_that_is_silent_leaves_it_incomplete(void **state)
{
	(void)state;
	workers[1].phase = workers[2].phase = PHASE_SILENT;
	expect(VERDICT_INCOMPLETE, "the hosts of 2 of 4 workers were silent at the end");
}

static void a_daemon_that_was_started_again_never_says_healthy(void **state)
{
	(void)state;
	facts.restarts = 1;
	expect(VERDICT_INCOMPLETE, "the daemon on this host ended 1 time before the job did");
	facts.earlier_report = 7;
	expect(VERDICT_INCOMPLETE, "report-7 and earlier ones say what it found");
	facts.cnt = 0; /* the ranks connected to the daemon before */
	expect(VERDICT_INCOMPLETE, "was not watched any more");
}

static void a_short_job_and_one_without_training_are_inconclusive(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		workers[i].iterations = ENDING_ITERATIONS_MIN - 1;
	expect(VERDICT_INCONCLUSIVE,
	       "only 29 iterations were seen, 30 are needed; let the job run");
	for (int i = 0; i < 4; i++)
		workers[i].iterations = 1;
	expect(VERDICT_INCONCLUSIVE, "only 1 iteration was seen, 30 are needed");
	facts.cnt = 0;
	expect(VERDICT_INCONCLUSIVE, "import perftracker");
}

static void a_job_that_hung_for_a_while_is_inconclusive(void **state)
{
	(void)state;
	facts.hangs = 1;
	expect(VERDICT_INCONCLUSIVE, "1 time no iteration ended for a while");
}

static void an_unknown_end_is_not_a_good_one(void **state)
{
	(void)state;
	facts.end.exit_status = -1;
	expect(VERDICT_INCONCLUSIVE, "PerfTracker was ended before the job");
}

/* --- what is over --- */

static void a_slowdown_that_is_over_is_told_with_its_report(void **state)
{
	struct history history = { 0 };
	struct jobstate_pace pace = { .slow_since_step = 50,
				      .now_ns = 20 * MS,
				      .baseline_ns = 10 * MS };

	(void)state;
	facts.history = &history;
	facts.slowdowns = 1;
	history_pace(&history, false, &pace, 40);
	assert_null(history_open(&history));
	history_pace(&history, true, &pace, 60);
	pace.now_ns = 30 * MS;
	history_pace(&history, true, &pace, 70);
	pace.now_ns = 25 * MS;
	history_pace(&history, true, &pace, 80);
	assert_int_equal(history_open(&history)->since_step, 50);
	history_report(&history, 3, VERDICT_SLOW);
	history_pace(&history, false, &pace, 120);
	assert_null(history_open(&history));
	expect(VERDICT_HEALTHY, "200 iterations watched, no slowdown now; a slowdown from step 50 "
				"to 120 (10.0 -> 30.0 ms) is over, its cause was not found: "
				"report-3.html");
}

static void a_report_with_a_finding_stays_the_one_of_its_slowdown(void **state)
{
	struct history history = { 0 };
	struct jobstate_pace pace = { .slow_since_step = 50, .now_ns = 20, .baseline_ns = 10 };

	(void)state;
	history_report(&history, 1, VERDICT_ABNORMAL); /* of no slowdown */
	assert_int_equal(history.cnt, 0);
	history_pace(&history, true, &pace, 60);
	history_report(&history, 2, VERDICT_SLOW);
	history_report(&history, 3, VERDICT_ABNORMAL);
	history_report(&history, 4, VERDICT_SLOW);
	assert_int_equal(history.slowdowns[0].report, 3);
	assert_int_equal(history.slowdowns[0].verdict, VERDICT_ABNORMAL);
}

static void the_first_slowdowns_and_the_latest_are_kept(void **state)
{
	struct history history = { 0 };
	struct jobstate_pace pace = { .now_ns = 20, .baseline_ns = 10 };
	struct str text = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= HISTORY_MAX + 3; i++) {
		pace.slow_since_step = 100 * i;
		history_pace(&history, true, &pace, 100 * i + 10);
		history_report(&history, i, VERDICT_ABNORMAL);
		history_pace(&history, false, &pace, 100 * i + 50);
	}
	assert_int_equal(history.cnt, HISTORY_MAX);
	assert_int_equal(history.slowdowns[0].since_step, 100);
	assert_int_equal(history.slowdowns[HISTORY_MAX - 1].since_step, 100 * (HISTORY_MAX + 3));
	history_append(&history, &text);
	assert_non_null(strstr(str_borrow(&text), "; 3 more slowdowns"));
	str_done(&text);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_exit_code_or_signal_of_the_first_rank_is_said),
		TEST(a_job_that_was_restarted_and_ended_well_has_failed_before),
		TEST(a_rank_that_failed_is_told_though_the_launcher_ends_well),
		TEST(a_rank_that_leaves_long_before_the_others_makes_the_job_incomplete),
		TEST(a_quiet_job_is_healthy),
		TEST(a_job_that_fails_names_the_rank_that_raised),
		TEST(a_job_whose_rank_was_killed_names_it),
		TEST(a_job_that_calls_exit_itself_fails_too),
		TEST(a_rank_that_was_done_is_named_beside_one_that_raises_later),
		TEST(a_command_killed_by_a_signal_fails_by_it),
		TEST(a_failed_job_that_was_slow_or_stuck_before_says_so),
		TEST(a_job_ended_by_the_user_has_not_failed),
		TEST(a_job_ended_in_silence_is_not_healthy),
		TEST(a_job_that_is_slow_at_its_end_is_slow),
		TEST(a_job_that_becomes_slow_just_before_its_end_is_not_healthy),
		TEST(a_job_far_from_its_best_that_noise_may_explain_is_not_healthy),
		TEST(a_job_whose_ranks_were_never_compared_is_not_healthy),
		TEST(a_job_whose_check_up_has_no_verdict_is_not_healthy),
		TEST(a_report_that_stays_is_followed_by_how_long_it_lasted),
		TEST(a_part_of_a_job_is_never_healthy),
		TEST(a_hook_that_is_off_leaves_it_incomplete),
		TEST(a_host_that_is_silent_leaves_it_incomplete),
		TEST(a_daemon_that_was_started_again_never_says_healthy),
		TEST(a_short_job_and_one_without_training_are_inconclusive),
		TEST(a_job_that_hung_for_a_while_is_inconclusive),
		TEST(an_unknown_end_is_not_a_good_one),
		TEST(a_slowdown_that_is_over_is_told_with_its_report),
		TEST(a_report_with_a_finding_stays_the_one_of_its_slowdown),
		TEST(the_first_slowdowns_and_the_latest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
