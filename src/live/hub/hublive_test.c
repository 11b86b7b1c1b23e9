/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub says of this moment, on a bus where the test publishes what hostd would. */
#include "live/hub/hublive.h"

#include "base/clock.h"
#include "host/process/test_tree.h"
#include "live/hub/hub_parts.h"
#include "live/hub/test_states.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static struct {
	struct run_options options;
	struct bus *bus;
	struct hub *hub;
	unsigned said_cnt;
	char replied[64];
} f;

static void take_reply(void *arg, const struct bus_message *message)
{
	const struct wire_reply *reply = message->data;

	(void)arg;
	(void)snprintf(f.replied, sizeof(f.replied), "%.60s", reply->text);
}

static void run(void)
{
	while (bus_run(f.bus, clock_mono_ns()) > 0)
		;
}

static void say_worker(const struct wire_state *worker)
{
	assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, worker, sizeof(*worker)), 0);
	run();
}

static int open_all(void **state)
{
	if (make_root(state) < 0)
		return -1;
	f.options = (struct run_options){ .out_dir = *state,
					  .window_ns = NSEC_PER_SEC,
					  .steps_max = 10,
					  .no_audit = true,
					  .quiet = true };
	f.said_cnt = 0;
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.bus), 0);
	assert_int_equal(hub_open(f.bus, &f.options, &f.hub), 0);
	assert_int_equal(bus_sub(f.bus, SUBJECT_REPLY, take_reply, NULL, NULL), 0);
	return 0;
}

static int close_all(void **state)
{
	(void)hub_close(f.hub);
	(void)bus_close(f.bus);
	return remove_root(state);
}

static json_t *live(void)
{
	struct str text = { 0 };
	json_error_t wrong;
	json_t *ret;

	assert_int_equal(hublive_print(f.hub, &text), 0);
	ret = json_loads(str_borrow(&text), 0, &wrong);
	assert_non_null(ret);
	str_done(&text);
	return ret;
}

static long long number(const json_t *root, const char *object, const char *key)
{
	const json_t *in = object != NULL ? json_object_get(root, object) : root;

	assert_true(json_is_integer(json_object_get(in, key)));
	return json_integer_value(json_object_get(in, key));
}

static const char *text(const json_t *root, const char *object, const char *key)
{
	const json_t *in = object != NULL ? json_object_get(root, object) : root;
	const char *ret = json_string_value(json_object_get(in, key));

	return ret != NULL ? ret : "(none)";
}

static void a_job_of_which_nothing_is_known_is_said_so(void **state)
{
	json_t *root = live();

	(void)state;
	assert_string_equal(text(root, NULL, "state"), "waiting");
	assert_int_equal(number(root, "coverage", "world_size"), 0);
	assert_true(json_is_null(json_object_get(root, "iteration_ms")));
	assert_true(json_is_null(json_object_get(root, "slow_since_step")));
	assert_true(json_is_null(json_object_get(root, "order")));
	json_decref(root);
}

static void ranks_that_are_off_or_were_never_seen_are_not_covered(void **state)
{
	struct wire_state worker;
	json_t *root;

	(void)state;
	for (int rank = 0; rank < 3; rank++) {
		worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);
		worker.phase = rank == 1 ? PHASE_SILENT : rank == 2 ? PHASE_GONE : PHASE_SLOW;
		worker.slow_since_step = rank == 0 ? 480 : 0;
		worker.baseline_ns = 20 * NSEC_PER_MSEC;
		say_worker(&worker);
	}
	root = live();
	assert_int_equal(number(root, "coverage", "world_size"), 4);
	assert_int_equal(number(root, "coverage", "watched"), 1);
	assert_int_equal(number(root, "coverage", "not_watched"), 1);
	assert_int_equal(number(root, "coverage", "ended"), 1);
	assert_int_equal(number(root, "coverage", "never_seen"), 1);
	assert_int_equal(number(root, NULL, "slow_since_step"), 480);
	assert_string_equal(text(root, NULL, "state"), "slow");
	json_decref(root);
}

static void ranks_beyond_the_limit_are_counted(void **state)
{
	struct wire_state worker;
	json_t *root;

	(void)state;
	for (int rank = HUBLIVE_RANKS_MAX + 9; rank >= 0; rank--) {
		worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);
		worker.world_size = HUBLIVE_RANKS_MAX + 10;
		say_worker(&worker);
	}
	root = live();
	assert_int_equal(json_array_size(json_object_get(root, "ranks")), HUBLIVE_RANKS_MAX);
	assert_int_equal(number(root, NULL, "ranks_left_out"), 10);
	assert_int_equal(number(root, "coverage", "watched"), HUBLIVE_RANKS_MAX + 10);
	json_decref(root);
}

static void ask(const char *said)
{
	struct wire_ask ask = { .client = 1, .kind = ASK_PROFILE };

	wire_ask_say_why(&ask, said);
	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &ask, sizeof(ask)), 0);
	run();
}

static void answer(int rank, enum wire_outcome outcome)
{
	struct wire_answer answer = { .worker = (uint32_t)rank + 1,
				      .outcome = outcome,
				      .order_id = f.hub->profile.id };

	assert_int_equal(bus_pub(f.bus, SUBJECT_ANSWER, &answer, sizeof(answer)), 0);
	run();
}

static void an_order_is_followed_from_its_step_to_the_last_rank(void **state)
{
	json_t *root;

	(void)state;
	for (int rank = 0; rank < 4; rank++) {
		const struct wire_state worker = test_worker(rank, 500, 50 * NSEC_PER_MSEC);

		say_worker(&worker);
	}
	ask("ann\nslow\n\"again\"");
	assert_string_equal(f.hub->asked_why, "ann: slow: 'again'");
	root = live();
	assert_string_equal(text(root, "order", "state"), "waiting for the step");
	assert_string_equal(text(root, "order", "why"), "request");
	assert_true(number(root, "order", "first_step") > 500);
	json_decref(root);
	answer(0, OUTCOME_BEGUN);
	answer(1, OUTCOME_BEGUN);
	answer(1, OUTCOME_EXPORTED);
	answer(2, OUTCOME_MISSED);
	root = live();
	assert_string_equal(text(root, "order", "state"), "recording");
	assert_int_equal(number(root, "order", "recording"), 1);
	assert_int_equal(number(root, "order", "missed"), 1);
	assert_int_equal(number(root, "order", "ranks"), 4);
	json_decref(root);
	answer(0, OUTCOME_EXPORTED);
	answer(0, OUTCOME_SUMMARIZED);
	answer(3, OUTCOME_EXPORTED);
	root = live();
	assert_string_equal(text(root, "order", "state"), "gathering");
	assert_int_equal(number(root, "order", "in"), 1);
	json_decref(root);
}

static void all_who_asked_before_an_order_are_kept_with_it(void **state)
{
	struct wire_state worker = test_worker(0, 500, 0); /* its pace is not known yet */
	json_t *root;

	(void)state;
	say_worker(&worker);
	ask("ann\nfirst");
	ask("");
	ask("bob\nsecond");
	root = live();
	assert_true(json_is_true(json_object_get(root, "asked")));
	json_decref(root);
	assert_string_equal(f.hub->asked_why, "ann: first; bob: second");
	for (int i = 0; i < 60; i++)
		ask("eve\n0123456789012345678901234567890123456789");
	assert_true(strlen(f.hub->asked_why) < sizeof(f.hub->asked_why));
}

static void count_said(void *arg, const struct str *live)
{
	(void)arg;
	assert_true(live->len > 100);
	f.said_cnt++;
}

static void it_is_said_once_a_second_and_only_if_somebody_looks(void **state)
{
	static const struct hub_show show = { .say = count_said };

	(void)state;
	hublive_say(f.hub, NSEC_PER_SEC);
	assert_int_equal(f.said_cnt, 0);
	hub_show(f.hub, &show);
	for (int64_t now_ns = 2 * NSEC_PER_SEC; now_ns < 5 * NSEC_PER_SEC;
	     now_ns += 100 * NSEC_PER_MSEC)
		hublive_say(f.hub, now_ns);
	assert_int_equal(f.said_cnt, 3);
}

#define with_hub(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_hub(a_job_of_which_nothing_is_known_is_said_so),
		with_hub(ranks_that_are_off_or_were_never_seen_are_not_covered),
		with_hub(ranks_beyond_the_limit_are_counted),
		with_hub(an_order_is_followed_from_its_step_to_the_last_rank),
		with_hub(all_who_asked_before_an_order_are_kept_with_it),
		with_hub(it_is_said_once_a_second_and_only_if_somebody_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
