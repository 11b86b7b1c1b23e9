/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/jobwatch.h"

#include "detect/test_detect.h"

#define S NSEC_PER_SEC

static struct jobwatch watch_default(void)
{
	struct jobwatch watch;

	jobwatch_init(&watch, &jobwatch_default_config);
	return watch;
}

static void set(enum detector_state *states, size_t cnt, enum detector_state state)
{
	for (size_t i = 0; i < cnt; i++)
		states[i] = state;
}

/* Updates ten times a second until `until_ns`; returns how many slow decisions there were. */
static unsigned watch_until(struct jobwatch *watch, const enum detector_state *states, size_t cnt,
			    int64_t *now_ns, int64_t until_ns)
{
	unsigned decisions = 0;

	for (; *now_ns < until_ns; *now_ns += S / 10)
		decisions += jobwatch_update(watch, states, cnt, *now_ns) == JOB_SLOW;
	return decisions;
}

static void jobwatch_decides_once_when_workers_get_slow_one_by_one(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[8];
	int64_t now_ns = 0;

	(void)state;
	set(states, 8, DETECTOR_WATCHING);
	for (size_t i = 0; i < 8; i++) { /* one each second: a quarter of eight is two */
		states[i] = DETECTOR_SLOW;
		assert_int_equal(watch_until(&watch, states, 8, &now_ns, (int64_t)(i + 1) * S),
				 i == 3);
		assert_int_equal(jobwatch_is_slow(&watch), i >= 3);
	}
	assert_int_equal(watch_until(&watch, states, 8, &now_ns, 600 * S), 0);
}

static void jobwatch_waits_until_a_small_slowdown_has_cost_a_second(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2];
	int64_t now_ns = 0;

	(void)state;
	set(states, 2, DETECTOR_SLOW);
	jobwatch_note_pace(&watch, 110, 100, now_ns); /* 10 %: after ten seconds */
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 99 * S / 10), 0);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 102 * S / 10), 1);
	assert_true(jobwatch_is_slow(&watch));
}

static void jobwatch_does_not_decide_on_what_is_over_within_two_seconds(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2];
	int64_t now_ns = 0;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		set(states, 2, DETECTOR_SLOW);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 19 * S / 10), 0);
		assert_false(jobwatch_is_slow(&watch));
		set(states, 2, DETECTOR_WATCHING);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 0);
	}
}

static void jobwatch_decides_again_after_recovery_and_the_gap(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	set(states, 2, DETECTOR_WATCHING);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 10 * S), 0);
	assert_false(jobwatch_is_slow(&watch));
	set(states, 2, DETECTOR_SLOW);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 16 * S), 0);
	assert_true(jobwatch_is_slow(&watch));
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 18 * S), 1); /* held back */
}

static void jobwatch_believes_one_slow_worker_after_a_while(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[16];
	int64_t now_ns = 0;

	(void)state;
	set(states, 16, DETECTOR_WATCHING);
	states[3] = DETECTOR_SLOW;
	assert_int_equal(watch_until(&watch, states, 16, &now_ns, 31 * S), 0);
	assert_int_equal(watch_until(&watch, states, 16, &now_ns, 33 * S), 1);
}

static void jobwatch_looks_again_longer_and_later_while_nothing_is_found(void **state)
{
	static const int64_t gaps[] = { 20, 60, 120, 300, 900, 3600, 3600 };
	static const unsigned lengths[] = { 2, 4, 4, 4, 4, 4, 4 };
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	assert_int_equal(jobwatch_lengthen(&watch), 1);
	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		int64_t begin_ns = now_ns;

		jobwatch_note_result(&watch, JOBWATCH_NO_CAUSE, 0, 0, now_ns);
		assert_int_equal(jobwatch_lengthen(&watch), lengths[i]);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, begin_ns + gaps[i] * S),
				 0);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 1);
		/* The window's result isn't known yet. */
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 400 * S), 0);
	}
	set(states, 2, DETECTOR_WATCHING);
	(void)watch_until(&watch, states, 2, &now_ns, now_ns + S);
	assert_int_equal(jobwatch_lengthen(&watch), 1);
}

static void jobwatch_leaves_a_slowdown_of_known_cause_alone_for_hours(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	jobwatch_note_result(&watch, JOBWATCH_CAUSE, 0, 0, now_ns);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 4 * 3600 * S - S), 0);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 2 * S), 1);
}

static void jobwatch_soon_looks_at_an_unconfirmed_cause_again(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	jobwatch_note_result(&watch, JOBWATCH_UNCONFIRMED, 0, 0, now_ns);
	assert_int_equal(jobwatch_lengthen(&watch), 1);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 4 * S), 0);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 2 * S), 1);
	/* Another slowdown has the usual gap. */
	jobwatch_note_result(&watch, JOBWATCH_UNCONFIRMED, 0, 0, now_ns);
	set(states, 2, DETECTOR_WATCHING);
	(void)watch_until(&watch, states, 2, &now_ns, now_ns + S);
	set(states, 2, DETECTOR_SLOW);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 9 * S), 0);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 10 * S), 1);
}

/* Its window showed 20 ms; longer for moments is noise. */
static void jobwatch_looks_again_once_a_job_of_known_cause_is_slower_still(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	jobwatch_note_result(&watch, JOBWATCH_CAUSE, 20, 0, now_ns);
	for (unsigned i = 0; i < 60; i++) {
		jobwatch_note_pace(&watch, i % 2 == 0 ? 31 : 29, 10, now_ns);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 0);
	}
	jobwatch_note_pace(&watch, 31, 10, now_ns);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 2 * S), 0);
	jobwatch_note_pace(&watch, 31, 10, now_ns);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 1);
}

static void jobwatch_waits_as_long_as_the_budget_of_overhead_demands(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	jobwatch_note_result(&watch, JOBWATCH_NO_WINDOW, 0, 500 * S, now_ns);
	assert_int_equal(jobwatch_lengthen(&watch), 1);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 200 * S), 0);
	set(states, 2, DETECTOR_WATCHING);
	(void)watch_until(&watch, states, 2, &now_ns, now_ns + S);
	set(states, 2, DETECTOR_SLOW); /* another slowdown has the same budget */
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 298 * S), 0);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 3 * S), 1);
}

/* A window that stopped the job for 15 s: 500 s by a budget of 3 %, 94 s while it is 5 times slower. */
static void jobwatch_waits_less_while_a_slowdown_costs_more_than_windows(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	jobwatch_note_pace(&watch, 11, 10, now_ns); /* costs less than the budget allows */
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 15 * S), 1);
	jobwatch_note_result(&watch, JOBWATCH_NO_CAUSE, 11, 500 * S, now_ns);
	for (unsigned i = 0; i < 60; i++) {
		jobwatch_note_pace(&watch, 11, 10, now_ns);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 0);
	}
	for (unsigned i = 0; i < 30; i++) {
		jobwatch_note_pace(&watch, 50, 10, now_ns);
		assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + S), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		jobwatch_note_pace(&watch, 50, 10, now_ns);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 6 * S), 1);
	/* A known cause is not looked at again for that. */
	jobwatch_note_result(&watch, JOBWATCH_CAUSE, 50, 0, now_ns);
	jobwatch_note_pace(&watch, 50, 10, now_ns);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, now_ns + 600 * S), 0);
}

static void jobwatch_takes_only_a_worker_at_its_pace_for_the_end_of_a_slowdown(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	assert_int_equal(watch_until(&watch, states, 0, &now_ns, 9 * S), 0); /* the job ends */
	assert_true(jobwatch_is_slow(&watch));
	set(states, 2, DETECTOR_LEARNING);
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 15 * S), 0);
	assert_true(jobwatch_is_slow(&watch));
	states[0] = DETECTOR_WATCHING;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 16 * S), 0);
	assert_false(jobwatch_is_slow(&watch));
}

static void jobwatch_distinguishes_blocked_from_slow(void **state)
{
	struct jobwatch watch = watch_default();
	enum detector_state states[2] = { DETECTOR_SLOW, DETECTOR_SLOW };
	int64_t now_ns = 0;

	(void)state;
	assert_int_equal(watch_until(&watch, states, 2, &now_ns, 5 * S), 1);
	set(states, 2, DETECTOR_BLOCKED);
	assert_int_equal(jobwatch_update(&watch, states, 2, 20 * S), JOB_BLOCKED);
	set(states, 2, DETECTOR_SLOW);
	assert_int_equal(jobwatch_update(&watch, states, 2, 90 * S),
			 JOB_NOTHING); /* the same one */
}

static void jobwatch_decides_nothing_without_workers(void **state)
{
	struct jobwatch watch = watch_default();

	(void)state;
	assert_int_equal(jobwatch_update(&watch, NULL, 0, 0), JOB_NOTHING);
}

int run_jobwatch_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobwatch_decides_once_when_workers_get_slow_one_by_one),
		cmocka_unit_test(jobwatch_decides_again_after_recovery_and_the_gap),
		cmocka_unit_test(jobwatch_believes_one_slow_worker_after_a_while),
		cmocka_unit_test(jobwatch_waits_until_a_small_slowdown_has_cost_a_second),
		cmocka_unit_test(jobwatch_does_not_decide_on_what_is_over_within_two_seconds),
		cmocka_unit_test(jobwatch_looks_again_longer_and_later_while_nothing_is_found),
		cmocka_unit_test(jobwatch_leaves_a_slowdown_of_known_cause_alone_for_hours),
		cmocka_unit_test(jobwatch_soon_looks_at_an_unconfirmed_cause_again),
		cmocka_unit_test(jobwatch_looks_again_once_a_job_of_known_cause_is_slower_still),
		cmocka_unit_test(jobwatch_waits_as_long_as_the_budget_of_overhead_demands),
		cmocka_unit_test(jobwatch_waits_less_while_a_slowdown_costs_more_than_windows),
		cmocka_unit_test(
			jobwatch_takes_only_a_worker_at_its_pace_for_the_end_of_a_slowdown),
		cmocka_unit_test(jobwatch_distinguishes_blocked_from_slow),
		cmocka_unit_test(jobwatch_decides_nothing_without_workers),
	};

	return cmocka_run_group_tests_name("jobwatch", tests, NULL, NULL);
}
