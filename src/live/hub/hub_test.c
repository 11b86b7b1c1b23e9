/* SPDX-License-Identifier: Apache-2.0 */
/* The hub on a bus where the test publishes what hostd would. */
#include "base/clock.h"
#include "base/file.h"
#include "format/fingerprint/fingerprint.h"
#include "format/shared/message.h"
#include "host/process/test_tree.h"
#include "live/hub/hub_parts.h"
#include "live/hub/plan.h"
#include "live/hub/test_states.h"
#include "live/link/wire_request.h"
#include "model/thresholds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RANK_CNT 4

static struct {
	const char *dir;
	struct run_options options;
	struct bus *bus;
	struct hub *hub;
} f;

static void run(void)
{
	while (bus_run(f.bus, clock_mono_ns()) > 0)
		;
}

static int open_all(void **state)
{
	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	f.options = (struct run_options){ .out_dir = f.dir,
					  .window_ns = NSEC_PER_SEC,
					  .steps_max = 10,
					  .no_audit = true,
					  .quiet = true };
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.bus), 0);
	assert_int_equal(hub_open(f.bus, &f.options, &f.hub), 0);
	for (int rank = 0; rank < RANK_CNT; rank++) {
		const struct wire_state worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	run();
	f.hub->compared = true; /* by a check-up */
	return 0;
}

static int close_all(void **state)
{
	(void)hub_close(f.hub);
	(void)bus_close(f.bus);
	return remove_root(state);
}

/* Sends the fingerprint of a window in which nothing is recorded. */
static void deliver(int rank)
{
	struct wire_answer answer = { .worker = (uint32_t)rank + 1,
				      .outcome = OUTCOME_SUMMARIZED,
				      .order_id = 1 };
	struct fingerprint fp;
	struct err err;

	(void)snprintf(answer.text, sizeof(answer.text), "%s/%d.ptfp", f.dir, rank);
	fingerprint_init(&fp);
	fp.rank = rank;
	fp.world_size = RANK_CNT;
	fp.window_ns = NSEC_PER_SEC;
	assert_int_equal(fingerprint_write(&fp, answer.text, &err), 0);
	fingerprint_done(&fp);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)), 0);
	run();
}

static void assert_reported(const char *expected)
{
	char path[128], *text;
	struct err err;
	size_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/report.json", f.dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_whole(path, fd, 1 << 20, &text, &len, &err), 0);
	(void)close(fd);
	if (memmem(text, len, expected, strlen(expected)) == NULL)
		fail_msg("expected \"%s\" in %.*s", expected, (int)len, text);
	free(text);
}

static void the_last_report_counts_a_slowdown_whose_profile_the_jobs_end_finishes(void **state)
{
	const struct profile_wish wish = { "slowdown", NSEC_PER_SEC, 10 };

	(void)state;
	assert_int_equal(hub_start_profile(f.hub, &wish, clock_mono_ns()), 0);
	for (int rank = 0; rank < RANK_CNT; rank++)
		deliver(rank);
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported(
		"500 iterations watched, no slowdown now; 1 short slowdown was profiled, its cause "
		"was not found");
}

static struct wire_profile heard_profile;

static void hear_profile(_unused_ void *arg, const struct bus_message *message)
{
	heard_profile = *(const struct wire_profile *)message->data;
}

static void answer_all(enum wire_outcome outcome)
{
	for (int rank = 0; rank < RANK_CNT; rank++) {
		const struct wire_answer answer = { .worker = (uint32_t)rank + 1,
						    .outcome = outcome,
						    .order_id = 1 };

		assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)), 0);
	}
	run();
	hub_tick(f.hub, clock_mono_ns());
	run();
}

static void an_order_that_was_late_for_all_is_given_again(void **state)
{
	const struct profile_wish wish = { "checkup", NSEC_PER_SEC, 10 };
	const struct wire_answer late = { .outcome = OUTCOME_MISSED, .text = MISSED_LATE };

	(void)state;
	assert_int_equal(hub_start_profile(f.hub, &wish, clock_mono_ns()), 0);
	for (uint64_t order = 1; order <= 1 + PLAN_LATE_MAX; order++) {
		assert_true(f.hub->profile.active);
		assert_int_equal(f.hub->profile.id, order);
		for (int rank = 0; rank < RANK_CNT; rank++) {
			struct wire_answer answer = late;

			answer.worker = (uint32_t)rank + 1;
			answer.order_id = order;
			assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)),
					 0);
		}
		run();
		hub_tick(f.hub, clock_mono_ns());
		run();
	}
	assert_false(f.hub->profile.active);
}

static void the_job_is_watched_again_while_summaries_are_made(void **state)
{
	const struct profile_wish wish = { "slowdown", NSEC_PER_SEC, 10 };
	struct bus_sub *sub;

	(void)state;
	assert_int_equal(bus_sub(f.bus, SUBJECT_PROFILE, hear_profile, NULL, &sub), 0);
	assert_int_equal(hub_start_profile(f.hub, &wish, clock_mono_ns()), 0);
	answer_all(OUTCOME_BEGUN);
	assert_int_equal(heard_profile.progress, PROFILE_BEGUN);
	answer_all(OUTCOME_EXPORTED);
	assert_true(f.hub->profile.active);
	assert_int_equal(heard_profile.progress, PROFILE_NONE);
	(void)bus_unsub(f.bus, sub);
}

static void a_hang_in_a_window_ends_the_window_and_is_reported(void **state)
{
	const struct profile_wish wish = { "checkup", NSEC_PER_SEC, 10 };
	int64_t now_ns = clock_mono_ns();

	(void)state;
	assert_int_equal(hub_start_profile(f.hub, &wish, now_ns), 0);
	for (int rank = 0; rank < RANK_CNT; rank++) {
		struct wire_state worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

		worker.phase = PHASE_BLOCKED;
		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	run();
	hub_tick(f.hub, now_ns + NSEC_PER_SEC);
	assert_false(f.hub->profile.active);
	hub_tick(f.hub, now_ns + 2 * NSEC_PER_SEC);
	hub_tick(f.hub, now_ns + 15 * NSEC_PER_SEC); /* no stacks come */
	assert_reported("no iteration ends any more");
}

/* Ctrl-C wakes a worker that waits for another one, and its step ends with an exception. */
static void a_mark_after_the_request_to_end_does_not_hide_the_silence_before(void **state)
{
	const struct job_end end = { .exit_status = 130,
				     .asked_signal = SIGINT,
				     .asked_ns = TEST_NOW_NS };

	(void)state;
	hub_expect_end(f.hub);
	for (int rank = 0; rank < RANK_CNT; rank++) {
		struct wire_state worker = test_worker(rank, 501, 50 * NSEC_PER_MSEC);

		worker.last_ns = TEST_NOW_NS + NSEC_PER_MSEC;
		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	run();
	hub_finish(f.hub, &end);
	assert_reported("but none ended in the last 20 s; then ended by SIGINT (Ctrl-C)");
}

static bool is_reported(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/report.json", f.dir);
	return access(path, F_OK) == 0;
}

static void an_early_window_is_kept_and_makes_no_report(void **state)
{
	const struct profile_wish wish = { PROFILE_EARLY, NSEC_PER_SEC, 10 };

	(void)state;
	assert_int_equal(hub_start_profile(f.hub, &wish, clock_mono_ns()), 0);
	for (int rank = 0; rank < RANK_CNT; rank++)
		deliver(rank);
	hub_tick(f.hub, TEST_NOW_NS);
	assert_true(hub_idle(f.hub));
	assert_false(is_reported());
	assert_int_equal(f.hub->reference.files.cnt, RANK_CNT);
}

static struct {
	struct wire_reply reply;
	unsigned accept_cnt;
} heard;

static void hear_reply(_unused_ void *arg, const struct bus_message *message)
{
	heard.reply = *(const struct wire_reply *)message->data;
}

static void hear_accept(_unused_ void *arg, _unused_ const struct bus_message *message)
{
	heard.accept_cnt++;
}

static void ask_to_accept(void)
{
	const struct wire_ask ask = { .client = 7, .kind = ASK_ACCEPT, .pid = 99 };

	heard.reply = (struct wire_reply){ .status = -1 };
	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &ask, sizeof(ask)), 0);
	run();
	assert_int_equal(heard.reply.client, 7);
}

static void say_step_ns(int64_t step_ns)
{
	for (int rank = 0; rank < RANK_CNT; rank++) {
		const struct wire_state worker = test_worker(rank, 500, step_ns);

		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &worker, sizeof(worker)), 0);
	}
	run();
}

/* Right after a window no worker knows its pace. */
static void a_request_waits_for_the_pace_and_not_for_ever(void **state)
{
	const struct wire_ask ask = { .client = 7, .kind = ASK_PROFILE, .pid = 99 };
	struct bus_sub *sub;

	(void)state;
	assert_int_equal(bus_sub(f.bus, SUBJECT_REPLY, hear_reply, NULL, &sub), 0);
	heard.reply = (struct wire_reply){ .client = 0 };
	say_step_ns(0);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &ask, sizeof(ask)), 0);
	run();
	assert_int_equal(heard.reply.client, 0);
	assert_false(f.hub->profile.active);
	say_step_ns(50 * NSEC_PER_MSEC);
	hub_tick(f.hub, clock_mono_ns());
	assert_true(f.hub->profile.active);
	assert_string_equal(f.hub->profile.trigger.kind, PROFILE_REQUEST);
	f.hub->profile.active = false;
	say_step_ns(0);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &ask, sizeof(ask)), 0);
	run();
	hub_tick(f.hub, clock_mono_ns() + 60 * NSEC_PER_SEC);
	run();
	assert_int_equal(heard.reply.client, 7);
	assert_int_equal(heard.reply.status, EAGAIN);
	assert_non_null(strstr(heard.reply.text, "iteration time"));
	(void)bus_unsub(f.bus, sub);
}

static void the_pace_of_a_slow_job_can_be_accepted_and_that_of_another_cannot(void **state)
{
	struct wire_state slow = test_worker(2, 900, 33800000);
	struct bus_sub *subs[2];

	(void)state;
	heard.accept_cnt = 0;
	assert_int_equal(bus_sub(f.bus, SUBJECT_REPLY, hear_reply, NULL, &subs[0]), 0);
	assert_int_equal(bus_sub(f.bus, SUBJECT_ACCEPT, hear_accept, NULL, &subs[1]), 0);
	ask_to_accept();
	assert_int_equal(heard.reply.status, EINVAL);
	assert_non_null(strstr(heard.reply.text, "not slow"));
	assert_int_equal(heard.accept_cnt, 0);
	slow.phase = PHASE_SLOW;
	slow.slow_since_step = 650;
	slow.baseline_ns = 9800000;
	assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &slow, sizeof(slow)), 0);
	run();
	ask_to_accept();
	assert_int_equal(heard.reply.status, 0);
	assert_string_equal(heard.reply.text, "baseline 9.8 -> 33.8 ms accepted at step 900");
	assert_int_equal(heard.accept_cnt, 1);
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++)
		(void)bus_unsub(f.bus, subs[i]);
}

static void a_job_without_a_profile_had_no_slowdown(void **state)
{
	(void)state;
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported("500 iterations watched, no slowdown");
}

static void a_job_without_any_window_is_not_healthy(void **state)
{
	(void)state;
	f.hub->compared = false;
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported("500 iterations watched, no slowdown, but the ranks were not compared");
	assert_reported("\"inconclusive\"");
}

/* An audit takes 20 s, in which the job may end. */
static void a_check_up_that_waits_for_its_second_window_goes_before_an_audit(void **state)
{
	const int64_t now_ns = clock_mono_ns();

	(void)state;
	checkup_note_begun(&f.hub->checkup, now_ns);
	assert_false(hub_holds_audit(f.hub, now_ns));
	checkup_note_doubted(&f.hub->checkup, now_ns);
	assert_true(hub_holds_audit(f.hub, now_ns));
	checkup_note_begun(&f.hub->checkup, now_ns);
	assert_false(hub_holds_audit(f.hub, now_ns));
}

static void a_job_without_iterations_is_given_advice_once(void **state)
{
	const int64_t begin_ns = clock_mono_ns();

	(void)state;
	hub_tick(f.hub, begin_ns);
	hub_tick(f.hub, begin_ns + HUB_NO_MARKS_NS);
	assert_false(f.hub->advised); /* its workers made marks */
	f.hub->workers.cnt = 0;
	hub_tick(f.hub, begin_ns + HUB_NO_MARKS_NS - 1);
	assert_false(f.hub->advised);
	hub_tick(f.hub, begin_ns + HUB_NO_MARKS_NS);
	assert_true(f.hub->advised);
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported("perftracker.step()");
}

/* Its latest report did not see the slowdown, so the end says that the job is slow. */
static void a_slow_job_ends_as_slow_after_a_report_of_a_window_that_did_not_see_it(void **state)
{
	static const enum verdict verdicts[] = { VERDICT_INCONCLUSIVE, VERDICT_HEALTHY };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		struct wire_state slow = test_worker(2, 900, 33800000);
		struct jobstate_pace pace;

		slow.phase = PHASE_SLOW;
		slow.slow_since_step = 650;
		slow.baseline_ns = 9800000;
		assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &slow, sizeof(slow)), 0);
		run();
		f.hub->watch.slow.held = true;
		assert_true(hub_is_slow(f.hub, &pace));
		history_pace(&f.hub->history, true, &pace, 900);
		history_report(&f.hub->history, 1, verdicts[i]);
		f.hub->last = (struct last_report){ .present = true, .verdict = verdicts[i] };
		hub_finish(f.hub, &(struct job_end){ 0 });
		assert_reported("\"slow\"");
		assert_reported("9.8 -> 33.8 ms since step 650 (3.4x)");
	}
}

static void publish(const struct wire_state *state)
{
	assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, state, sizeof(*state)), 0);
	run();
}

/* Ends this rank; a later state says how. */
static void end_rank(int rank, int wait_status)
{
	struct wire_state state = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

	state.phase = PHASE_GONE;
	publish(&state);
	state.exit_known = 1;
	state.exit_status = wait_status;
	publish(&state);
}

static void ranks_that_are_started_again_are_a_new_life_of_the_job(void **state)
{
	(void)state;
	f.hub->hang_step = 500;
	f.hub->watch.slow.held = true;
	end_rank(2, SIGKILL);
	for (int rank = 0; rank < RANK_CNT; rank++) {
		if (rank != 2)
			end_rank(rank, SIGTERM);
	}
	for (int rank = 0; rank < RANK_CNT; rank++) {
		struct wire_state fresh = test_worker(rank, 3, 50 * NSEC_PER_MSEC);

		fresh.worker += 100;
		publish(&fresh);
	}
	assert_int_equal(f.hub->lives.restarts, 1);
	assert_int_equal(f.hub->workers.cnt, RANK_CNT);
	assert_int_equal(f.hub->hang_step, 0);
	assert_false(jobwatch_is_slow(&f.hub->watch));
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported("and was restarted 1 time: rank 2 (pid 0) was the first to end, at step "
			"500, by SIGKILL");
	assert_reported("the last life ran 3 iterations, too few to judge");
}

static void two_living_processes_of_one_rank_are_told(void **state)
{
	struct wire_state second = test_worker(1, 3, 50 * NSEC_PER_MSEC);

	(void)state;
	end_rank(0, 1 << 8);
	second.rank = 0;
	second.worker = 90;
	publish(&second);
	assert_false(f.hub->twice_logged); /* it was started again */
	second.rank = 1;
	second.worker = 91;
	publish(&second);
	assert_true(f.hub->twice_logged);
}

static void the_exit_status_of_a_rank_that_was_started_again_comes_late(void **state)
{
	struct wire_state old = test_worker(0, 500, 50 * NSEC_PER_MSEC), fresh = old;

	(void)state;
	old.phase = PHASE_GONE;
	publish(&old);
	fresh.worker = 100;
	publish(&fresh);
	old.exit_known = 1;
	old.exit_status = 7 << 8;
	publish(&old);
	assert_int_equal(f.hub->workers.cnt, RANK_CNT);
	hub_finish(f.hub, &(struct job_end){ 0 });
	assert_reported("at step 500, with exit code 7");
}

static void a_sigint_that_only_the_launcher_got_is_no_failure(void **state)
{
	(void)state;
	for (int rank = 0; rank < RANK_CNT; rank++)
		end_rank(rank, SIGINT);
	hub_finish(f.hub, &(struct job_end){ .exit_status = 1 });
	assert_reported("no slowdown; then ended by SIGINT (Ctrl-C)");
}

static void ends_after_the_user_ended_the_job_are_no_failures(void **state)
{
	(void)state;
	hub_expect_end(f.hub);
	end_rank(1, SIGKILL);
	hub_finish(f.hub,
		   &(struct job_end){ .exit_status = 143, .asked_signal = SIGTERM, .asked_ns = 1 });
	assert_reported("then ended by SIGTERM");
	assert_reported("\"healthy\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			ranks_that_are_started_again_are_a_new_life_of_the_job, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(an_order_that_was_late_for_all_is_given_again,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(two_living_processes_of_one_rank_are_told, open_all,
						close_all),
		cmocka_unit_test_setup_teardown(
			the_exit_status_of_a_rank_that_was_started_again_comes_late, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_sigint_that_only_the_launcher_got_is_no_failure,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(ends_after_the_user_ended_the_job_are_no_failures,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(
			a_slow_job_ends_as_slow_after_a_report_of_a_window_that_did_not_see_it,
			open_all, close_all),
		cmocka_unit_test_setup_teardown(an_early_window_is_kept_and_makes_no_report,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(a_job_without_iterations_is_given_advice_once,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(
			the_last_report_counts_a_slowdown_whose_profile_the_jobs_end_finishes,
			open_all, close_all),
		cmocka_unit_test_setup_teardown(a_request_waits_for_the_pace_and_not_for_ever,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(
			the_pace_of_a_slow_job_can_be_accepted_and_that_of_another_cannot, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(the_job_is_watched_again_while_summaries_are_made,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(a_hang_in_a_window_ends_the_window_and_is_reported,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(
			a_mark_after_the_request_to_end_does_not_hide_the_silence_before, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_job_without_a_profile_had_no_slowdown, open_all,
						close_all),
		cmocka_unit_test_setup_teardown(a_job_without_any_window_is_not_healthy, open_all,
						close_all),
		cmocka_unit_test_setup_teardown(
			a_check_up_that_waits_for_its_second_window_goes_before_an_audit, open_all,
			close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
