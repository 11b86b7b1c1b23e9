/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/lives.h"

#include "live/hub/test_states.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define EXIT(code) ((code) << 8)

static struct lives lives;

static int set_up(void **state)
{
	(void)state;
	lives = (struct lives){ 0 };
	return 0;
}

/* A process of this rank that said bye and whose exit status is not known yet. */
static struct wire_state ended(uint32_t worker, int rank)
{
	struct wire_state ret = test_worker(rank, 312, NSEC_PER_MSEC);

	ret.worker = ret.arrival = worker;
	ret.pid = 70 + worker;
	ret.phase = PHASE_GONE;
	ret.bye = 1;
	return ret;
}

static struct wire_state ended_by(uint32_t worker, int rank, int wait_status)
{
	struct wire_state ret = ended(worker, rank);

	ret.exit_known = 1;
	ret.exit_status = wait_status;
	return ret;
}

static struct wire_state raised(uint32_t worker, int rank, const char *what)
{
	struct wire_state ret = ended(worker, rank);

	(void)strncpy(ret.raised, what, sizeof(ret.raised) - 1);
	return ret;
}

static void assert_said(const struct wire_state *state, const char *text)
{
	struct str out = { 0 };

	life_append_end(state, &out);
	assert_string_equal(str_borrow(&out), text);
	str_done(&out);
}

static void each_way_to_end_has_its_words(void **state)
{
	struct wire_state s = raised(1, 1, "ValueError");

	(void)state;
	assert_said(&s, "rank 1 (pid 71) ended at step 312 by ValueError");
	s = ended_by(1, 1, SIGKILL);
	assert_said(&s, "rank 1 (pid 71) ended at step 312 by SIGKILL");
	s = ended_by(1, 1, EXIT(3));
	assert_said(&s, "rank 1 (pid 71) ended at step 312 with exit code 3");
	s = ended_by(1, 1, 40);
	assert_said(&s, "rank 1 (pid 71) ended at step 312 by signal 40");
	s = ended(1, 1);
	assert_said(&s, "rank 1 (pid 71) ended at step 312 by itself");
	s.bye = 0;
	assert_said(&s, "rank 1 (pid 71) ended at step 312 without notice");
}

static void an_exit_status_of_0_is_no_failure_whatever_was_printed_before(void **state)
{
	struct wire_state s = raised(1, 1, "ValueError");

	(void)state;
	assert_true(life_is_failure(&s));
	s.exit_known = 1;
	assert_false(life_is_failure(&s));
	assert_said(&s, "rank 1 (pid 71) ended at step 312 with exit code 0");
	s = ended_by(1, 1, 0);
	s.bye = 0; /* os._exit(0) */
	assert_false(life_is_failure(&s));
	s.exit_status = EXIT(1);
	assert_true(life_is_failure(&s));
}

static void a_later_state_of_an_end_replaces_the_first_at_its_place(void **state)
{
	struct wire_state first = ended(1, 1), second = raised(2, 0, "RuntimeError");

	(void)state;
	lives_note_end(&lives, &first, 300);
	lives_note_end(&lives, &second, 301);
	assert_int_equal(life_first_failure(lives_present(&lives))->state.worker, 2);
	first = ended_by(1, 1, EXIT(3)); /* sys.exit(3), as the kernel says a moment later */
	lives_note_end(&lives, &first, 999);
	assert_int_equal(life_first_failure(lives_present(&lives))->state.worker, 1);
	assert_int_equal(life_first(lives_present(&lives))->others_step, 300);
	assert_true(lives_know(&lives, 2));
	assert_false(lives_know(&lives, 3));
}

/* Of another host, whose news comes later. */
static void an_abort_does_not_come_before_the_exception_of_another_rank(void **state)
{
	struct wire_state aborted = ended_by(1, 0, SIGABRT), second = ended_by(2, 1, SIGSEGV),
			  failed = raised(3, 2, "ValueError");

	(void)state;
	lives_note_end(&lives, &aborted, 312);
	assert_int_equal(life_first_failure(lives_present(&lives))->state.worker, 1);
	lives_note_end(&lives, &second, 312);
	assert_int_equal(life_first_failure(lives_present(&lives))->state.worker, 1);
	lives_note_end(&lives, &failed, 312);
	assert_int_equal(life_first_failure(lives_present(&lives))->state.worker, 3);
}

static void ranks_that_are_started_again_after_a_failure_are_one_restart(void **state)
{
	struct wire_state a = raised(1, 0, "ValueError"), b = ended_by(2, 1, SIGTERM);

	(void)state;
	lives_note_end(&lives, &a, 312);
	lives_note_end(&lives, &b, 312);
	assert_true(lives_note_successor(&lives, &b, 3, 312));
	assert_false(lives_note_successor(&lives, &a, 4, 312));
	assert_int_equal(lives.restarts, 1);
	assert_int_equal(lives_present(&lives)->cnt, 0);
	assert_int_equal(life_first(lives_latest_failed(&lives))->state.worker, 1);
	assert_int_equal(lives_latest_failed(&lives)->step, 312);
}

/* Ray ends its workers by exit(1), others by a signal, before the next program begins. */
static void processes_that_their_launcher_ended_alike_have_not_failed(void **state)
{
	static const int ways[] = { SIGTERM, SIGKILL, EXIT(1) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct wire_state a = ended_by(1, 0, ways[i]), b = ended_by(2, 1, ways[i]);

		lives = (struct lives){ 0 };
		a.bye = b.bye = 0;
		lives_note_end(&lives, &a, 312);
		lives_note_end(&lives, &b, 312);
		assert_true(lives_note_successor(&lives, &a, 3, 312));
		assert_int_equal(lives.restarts, 0);
	}
}

static void one_process_that_was_killed_is_a_failure(void **state)
{
	struct wire_state killed = ended_by(1, 0, SIGKILL), other = ended_by(2, 1, SIGTERM);

	(void)state;
	killed.bye = other.bye = 0;
	lives_note_end(&lives, &killed, 312);
	assert_true(lives_note_successor(&lives, &killed, 3, 312));
	assert_int_equal(lives.restarts, 1);
	lives = (struct lives){ 0 };
	lives_note_end(&lives, &killed, 312);
	lives_note_end(&lives, &other, 312);
	assert_true(lives_note_successor(&lives, &killed, 3, 312));
	assert_int_equal(lives.restarts, 1);
}

static void a_program_that_follows_one_that_ended_well_is_no_restart(void **state)
{
	struct wire_state a = ended_by(1, 0, 0);

	(void)state;
	lives_note_end(&lives, &a, 0);
	assert_true(lives_note_successor(&lives, &a, 2, 312));
	assert_int_equal(lives.restarts, 0);
	assert_null(lives_latest_failed(&lives));
}

static void after_many_restarts_the_first_and_the_latest_lives_are_kept(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 3 * LIVES_MAX; i++) {
		struct wire_state s = ended_by(i, 0, EXIT(1));

		lives_note_end(&lives, &s, 0);
		assert_true(lives_note_successor(&lives, &s, i + 1, i));
	}
	assert_int_equal(lives.restarts, 3 * LIVES_MAX);
	assert_int_equal(lives.all[0].ends[0].state.worker, 1);
	assert_int_equal(lives_latest_failed(&lives)->step, 3 * LIVES_MAX);
	for (uint32_t i = 0; i < 2 * LIFE_ENDS_MAX; i++) {
		struct wire_state s = ended(1000 + i, (int)i);

		lives_note_end(&lives, &s, 0);
	}
	assert_int_equal(lives_present(&lives)->cnt, LIFE_ENDS_MAX);
}

static void a_sigint_shows_on_at_least_half_of_the_failures(void **state)
{
	struct wire_state s[3] = { raised(1, 0, "KeyboardInterrupt"), ended_by(2, 1, SIGINT),
				   raised(3, 2, "RuntimeError") };

	(void)state;
	assert_false(life_is_interrupted(lives_present(&lives)));
	for (int i = 0; i < 3; i++)
		lives_note_end(&lives, &s[i], 0);
	assert_true(life_is_interrupted(lives_present(&lives)));
	s[1] = ended_by(2, 1, EXIT(1));
	lives_note_end(&lives, &s[1], 0);
	assert_false(life_is_interrupted(lives_present(&lives)));
}

static void a_life_that_ended_well_is_told_from_one_before_it(void **state)
{
	struct lives two = { .restarts = 0 };
	struct wire_state failed = { .worker = 1, .phase = PHASE_GONE, .exit_known = 1 }, well;

	(void)state;
	assert_false(lives_ended_well(&two));
	assert_false(lives_know_exit(&two, 1));
	failed.exit_status = EXIT(1);
	lives_note_end(&two, &failed, 10);
	assert_true(lives_know_exit(&two, 1));
	assert_false(lives_ended_well(&two));
	assert_true(lives_note_successor(&two, &failed, 2, 10));
	assert_false(lives_ended_well(&two));
	lives_note_end(&two, &failed, 10); /* repeated */
	well = (struct wire_state){ .worker = 2, .phase = PHASE_GONE };
	lives_note_end(&two, &well, 20);
	assert_false(lives_know_exit(&two, 2));
	well.exit_known = well.bye = 1;
	lives_note_end(&two, &well, 20);
	assert_true(lives_ended_well(&two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life_that_ended_well_is_told_from_one_before_it),
		cmocka_unit_test(each_way_to_end_has_its_words),
		cmocka_unit_test(an_exit_status_of_0_is_no_failure_whatever_was_printed_before),
		cmocka_unit_test_setup(a_later_state_of_an_end_replaces_the_first_at_its_place,
				       set_up),
		cmocka_unit_test_setup(an_abort_does_not_come_before_the_exception_of_another_rank,
				       set_up),
		cmocka_unit_test_setup(ranks_that_are_started_again_after_a_failure_are_one_restart,
				       set_up),
		cmocka_unit_test_setup(processes_that_their_launcher_ended_alike_have_not_failed,
				       set_up),
		cmocka_unit_test_setup(one_process_that_was_killed_is_a_failure, set_up),
		cmocka_unit_test_setup(a_program_that_follows_one_that_ended_well_is_no_restart,
				       set_up),
		cmocka_unit_test_setup(after_many_restarts_the_first_and_the_latest_lives_are_kept,
				       set_up),
		cmocka_unit_test_setup(a_sigint_shows_on_at_least_half_of_the_failures, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
