/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/checkup.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define S NSEC_PER_SEC
#define WORKER_CNT 4u

static struct {
	struct checkup checkup;
	struct wire_state states[WORKER_CNT];
	int64_t now_ns;
} f;

static int begin(_unused_ void **state)
{
	f.checkup = (struct checkup){ .recent_cnt = 50 };
	f.now_ns = TEST_NOW_NS;
	for (unsigned i = 0; i < WORKER_CNT; i++) {
		f.states[i] = test_worker((int)i, 500, 50 * NSEC_PER_MSEC);
		f.states[i].baseline_ns = 50 * NSEC_PER_MSEC;
		f.states[i].learned_cnt = 1;
	}
	return 0;
}

/* Whether a check-up becomes due in this time; f.now_ns is when. */
static bool comes_within(int64_t time_ns)
{
	for (int64_t end_ns = f.now_ns + time_ns; f.now_ns < end_ns; f.now_ns += S) {
		checkup_update(&f.checkup, f.states, WORKER_CNT, f.now_ns);
		if (checkup_is_due(&f.checkup, f.states, WORKER_CNT, f.now_ns))
			return true;
	}
	return false;
}

static void a_steady_job_gets_one_check_up_and_another_after_hours(_unused_ void **state)
{
	assert_false(comes_within(20 * S));
	assert_true(checkup_is_near(&f.checkup));
	assert_true(comes_within(2 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(checkup_is_near(&f.checkup));
	assert_false(comes_within(CHECKUP_INTERVAL_NS));
	assert_true(comes_within(2 * S));
}

static void an_unclear_check_up_is_followed_by_longer_ones(_unused_ void **state)
{
	static const unsigned times[] = { 1, 2, 4, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		assert_int_equal(checkup_lengthen(&f.checkup), times[i]);
		checkup_note_failed(&f.checkup, "rank 1 is late");
	}
	checkup_note_passed(&f.checkup);
	assert_int_equal(checkup_lengthen(&f.checkup), 1);
}

static void a_finding_in_doubt_gets_a_second_window_soon(_unused_ void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	checkup_note_doubted(&f.checkup, f.now_ns + S);
	assert_false(comes_within(5 * S));
	assert_true(comes_within(3 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(comes_within(CHECKUP_INTERVAL_NS));
}

/* The fault that it found makes the pace unsteady. */
static void the_second_window_does_not_wait_for_a_steady_pace(_unused_ void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_true(f.checkup.done_steady);
	checkup_note_doubted(&f.checkup, f.now_ns + S);
	f.states[1].slow_since_step = 480;
	f.states[1].phase = PHASE_SLOW;
	assert_true(comes_within(8 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(f.checkup.done_steady);
}

static void a_job_without_a_steady_pace_gets_a_check_up_late(void **state)
{
	f.states[2].baseline_ns = 0;
	assert_false(comes_within(2 * CHECKUP_PATIENCE_NS));
	f.states[2].baseline_ns = 50 * NSEC_PER_MSEC;
	f.states[1].phase = PHASE_LEARNING;
	assert_false(comes_within(2 * CHECKUP_PATIENCE_NS));
	(void)begin(state);
	f.states[1].slow_since_step = 480;
	f.states[1].phase = PHASE_SLOW;
	assert_false(comes_within(CHECKUP_PATIENCE_NS));
	assert_true(comes_within(2 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(f.checkup.done_steady);
	assert_false(comes_within(CHECKUP_INTERVAL_NS));
}

static void processes_that_were_started_again_are_waited_for_anew(void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	checkup_note_doubted(&f.checkup, f.now_ns);
	checkup_forget(&f.checkup);
	assert_false(comes_within(19 * S));
	(void)begin(state);
	f.states[1].slow_since_step = 480;
	f.states[1].phase = PHASE_SLOW;
	assert_false(comes_within(CHECKUP_PATIENCE_NS - S));
	checkup_forget(&f.checkup);
	assert_false(comes_within(CHECKUP_PATIENCE_NS - S));
}

/* Whether an early window becomes due in this time; f.now_ns is when. */
static bool early_comes_within(int64_t time_ns)
{
	for (int64_t end_ns = f.now_ns + time_ns; f.now_ns < end_ns; f.now_ns += S) {
		checkup_update(&f.checkup, f.states, WORKER_CNT, f.now_ns);
		if (checkup_is_early_due(&f.checkup, f.states, WORKER_CNT, f.now_ns))
			return true;
	}
	return false;
}

static void a_window_is_kept_soon_and_once(_unused_ void **state)
{
	assert_false(early_comes_within(CHECKUP_EARLY_NS));
	assert_true(early_comes_within(2 * S));
	checkup_note_early(&f.checkup, f.now_ns);
	assert_false(early_comes_within(1000 * S));
	assert_true(comes_within(S));
}

static void a_changed_job_gets_another_early_window_but_not_at_once(_unused_ void **state)
{
	assert_true(early_comes_within(30 * S));
	checkup_note_early(&f.checkup, f.now_ns);
	f.states[1].learned_cnt++;
	assert_false(early_comes_within(CHECKUP_EARLY_GAP_NS));
	assert_true(early_comes_within(2 * S));
}

static void an_accepted_pace_gets_a_past_of_its_own(_unused_ void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(early_comes_within(100 * S));
	checkup_note_past_lost(&f.checkup);
	assert_true(early_comes_within(S));
	checkup_note_early(&f.checkup, f.now_ns);
	assert_false(early_comes_within(100 * S));
}

static void what_has_had_its_check_up_needs_no_early_window(_unused_ void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	assert_false(early_comes_within(1000 * S));
	f.states[1].learned_cnt++;
	assert_true(early_comes_within(10 * S));
}

static void a_job_without_check_ups_has_no_early_window(_unused_ void **state)
{
	f.checkup.off = true;
	assert_false(early_comes_within(1000 * S));
}

static void a_job_of_long_iterations_is_steady_after_two_windows(_unused_ void **state)
{
	f.states[2].baseline_ns = 2 * S;
	assert_false(comes_within(100 * S));
	assert_true(comes_within(2 * S));
}

static void a_worker_that_is_slow_or_learns_begins_the_wait_again(void **state)
{
	static const enum wire_phase phases[] = { PHASE_SLOW, PHASE_LEARNING, PHASE_BLOCKED };

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		(void)begin(state);
		assert_false(comes_within(15 * S));
		f.states[1].phase = phases[i];
		assert_false(comes_within(5 * S));
		f.states[1].phase = PHASE_STEADY;
		assert_false(comes_within(19 * S));
		assert_true(comes_within(3 * S));
	}
	(void)begin(state);
	f.states[1].slow_since_step = 400;
	assert_false(comes_within(40 * S));
	f.states[1].slow_since_step = 0;
	f.states[1].baseline_ns = 0;
	assert_false(comes_within(100 * S));
}

/* On a busy machine iterations are slow for some moments again and again. */
static void noise_does_not_begin_the_wait_again(_unused_ void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_false(comes_within(8 * S));
		f.states[1].phase = PHASE_SLOW;
		assert_false(comes_within(S));
		f.states[1].phase = PHASE_STEADY;
	}
	assert_true(comes_within(5 * S));
	f.states[1].phase = PHASE_SLOW;
	assert_false(comes_within(S)); /* the window shall not show the noise */
}

static void another_iteration_or_process_gets_a_check_up_of_its_own(_unused_ void **state)
{
	assert_true(comes_within(30 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	f.states[3].worker = 99;
	assert_false(comes_within(CHECKUP_RETRY_NS - S));
	assert_true(comes_within(5 * S));
	checkup_note_begun(&f.checkup, f.now_ns);
	f.states[0].learned_cnt++;
	assert_true(comes_within(CHECKUP_RETRY_NS + 5 * S));
}

static void a_check_up_that_failed_is_repeated(_unused_ void **state)
{
	static const int64_t gaps_ns[] = { 20 * S, 60 * S, CHECKUP_RETRY_NS, CHECKUP_INTERVAL_NS };

	assert_true(comes_within(30 * S));
	for (size_t i = 0; i < ARRAY_SIZE(gaps_ns); i++) {
		checkup_note_begun(&f.checkup, f.now_ns);
		checkup_note_failed(&f.checkup, "");
		assert_false(comes_within(gaps_ns[i] - S));
		assert_true(comes_within(5 * S));
	}
	checkup_note_begun(&f.checkup, f.now_ns);
	checkup_note_passed(&f.checkup);
	assert_false(comes_within(CHECKUP_INTERVAL_NS - S));
}

static void no_check_up_comes_when_it_is_off_or_without_workers(_unused_ void **state)
{
	f.checkup.off = true;
	assert_false(comes_within(100 * S));
	f.checkup.off = false;
	for (unsigned i = 0; i < WORKER_CNT; i++)
		f.states[i].phase = PHASE_GONE;
	assert_false(comes_within(100 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_steady_job_gets_one_check_up_and_another_after_hours,
				       begin),
		cmocka_unit_test_setup(an_unclear_check_up_is_followed_by_longer_ones, begin),
		cmocka_unit_test_setup(a_finding_in_doubt_gets_a_second_window_soon, begin),
		cmocka_unit_test_setup(the_second_window_does_not_wait_for_a_steady_pace, begin),
		cmocka_unit_test_setup(a_job_without_a_steady_pace_gets_a_check_up_late, begin),
		cmocka_unit_test_setup(processes_that_were_started_again_are_waited_for_anew,
				       begin),
		cmocka_unit_test_setup(a_job_of_long_iterations_is_steady_after_two_windows, begin),
		cmocka_unit_test_setup(a_worker_that_is_slow_or_learns_begins_the_wait_again,
				       begin),
		cmocka_unit_test_setup(noise_does_not_begin_the_wait_again, begin),
		cmocka_unit_test_setup(another_iteration_or_process_gets_a_check_up_of_its_own,
				       begin),
		cmocka_unit_test_setup(a_window_is_kept_soon_and_once, begin),
		cmocka_unit_test_setup(a_changed_job_gets_another_early_window_but_not_at_once,
				       begin),
		cmocka_unit_test_setup(an_accepted_pace_gets_a_past_of_its_own, begin),
		cmocka_unit_test_setup(what_has_had_its_check_up_needs_no_early_window, begin),
		cmocka_unit_test_setup(a_job_without_check_ups_has_no_early_window, begin),
		cmocka_unit_test_setup(a_check_up_that_failed_is_repeated, begin),
		cmocka_unit_test_setup(no_check_up_comes_when_it_is_off_or_without_workers, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
