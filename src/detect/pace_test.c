/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/pace.h"

#include "detect/detector.h"
#include "detect/test_detect.h"
#include "model/thresholds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ITER_NS (100 * NSEC_PER_MSEC)

static struct pace *pace_default(void)
{
	struct pace *pace = pace_new(&detector_default_config.pace);

	assert_non_null(pace);
	return pace;
}

/* How often it became slow, and after how many samples first (0: never). */
struct outcome {
	unsigned slow, cleared;
	unsigned first_slow;
};

static struct outcome feed(struct pace *pace, double factor, unsigned cnt)
{
	struct outcome outcome = { 0 };

	for (unsigned i = 0; i < cnt; i++) {
		enum pace_result result = pace_add(pace, (int64_t)(ITER_NS * factor));

		outcome.slow += result == PACE_SLOW;
		outcome.cleared += result == PACE_CLEARED;
		if (result == PACE_SLOW && outcome.first_slow == 0)
			outcome.first_slow = i + 1;
	}
	return outcome;
}

static void pace_is_not_slow_while_the_job_warms_up(void **state)
{
	struct pace *pace = pace_default();
	struct outcome outcome;

	(void)state;
	for (unsigned i = 0; i < 40; i++) { /* compilation, then caches that fill */
		outcome = feed(pace, 1 + 30.0 / (1 + i * i), 1);
		assert_int_equal(outcome.slow, 0);
	}
	assert_int_equal(feed(pace, 1, 500).slow, 0);
	pace_free(pace);
}

static void pace_finds_a_step_change_in_few_iterations(void **state)
{
	/* A steady job: the mean of 50 passes 5 % after 2.5 / excess, and three must agree. */
	static const struct {
		double factor;
		unsigned latest;
	} cases[] = { { 1.06, 50 }, { 1.10, 30 }, { 1.25, 15 }, { 2, 8 }, { 3, 8 }, { 10, 8 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pace *pace = pace_default();
		struct outcome outcome;

		assert_int_equal(feed(pace, 1, 300).slow, 0);
		outcome = feed(pace, cases[i].factor, 200);
		assert_int_equal(outcome.slow, 1);
		assert_in_range(outcome.first_slow, 1, cases[i].latest);
		pace_free(pace);
	}
}

static void pace_leaves_four_percent_alone(void **state)
{
	struct pace *pace = pace_default();

	(void)state;
	(void)feed(pace, 1, 300);
	assert_int_equal(feed(pace, 1.04, 1000).slow, 0);
	pace_free(pace);
}

static void pace_reports_one_slowdown_once_and_its_end(void **state)
{
	struct pace *pace = pace_default();
	struct outcome outcome;

	(void)state;
	(void)feed(pace, 1, 300);
	assert_int_equal(feed(pace, 1.5, 300).slow, 1);
	outcome = feed(pace, 1, 300);
	assert_int_equal(outcome.cleared, 1);
	assert_int_equal(outcome.slow, 0);
	assert_int_equal(feed(pace, 1.5, 100).slow, 1); /* another one */
	pace_free(pace);
}

static struct pace_view look(const struct pace *pace)
{
	struct pace_view view;

	pace_look(pace, &view);
	return view;
}

static void pace_that_stays_slow_never_becomes_normal(void **state)
{
	struct pace *pace = pace_default();
	struct outcome outcome;

	(void)state;
	(void)feed(pace, 1, 300);
	outcome = feed(pace, 1.5, 20000);
	assert_int_equal(outcome.slow, 1);
	assert_int_equal(outcome.cleared, 0);
	assert_true(look(pace).slow);
	assert_int_equal(look(pace).baseline_ns, ITER_NS);
	assert_int_equal(feed(pace, 1, 100).cleared, 1);
	assert_int_equal(look(pace).slow_since, 0);
	pace_free(pace);
}

static void pace_knows_when_the_slowdown_began(void **state)
{
	static const double factors[] = { 1.1, 1.5, 4 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(factors); i++) {
		struct pace *pace = pace_default();

		(void)feed(pace, 1, 400);
		assert_int_equal(feed(pace, factors[i], 300).slow, 1);
		assert_int_equal(look(pace).slow_since, 401);
		pace_free(pace);
	}
}

static void pace_begins_a_second_slowdown_after_the_first(void **state)
{
	struct pace *pace = pace_default();

	(void)state;
	(void)feed(pace, 1, 400);
	(void)feed(pace, 3, 300);
	assert_int_equal(feed(pace, 1, 60).cleared, 1);
	assert_int_equal(feed(pace, 3, 100).slow, 1);
	assert_int_equal(look(pace).slow_since, 761);
	pace_free(pace);
}

static void pace_does_not_count_noise_before_a_large_step_as_slow(void **state)
{
	struct pace *pace = pace_default();

	(void)state;
	(void)feed(pace, 1, 400);
	assert_int_equal(feed(pace, 1.08, 10).slow, 0);
	assert_int_equal(feed(pace, 3, 100).slow, 1);
	assert_int_equal(look(pace).slow_since, 411);
	pace_free(pace);
}

static void pace_that_is_accepted_is_the_baseline(void **state)
{
	/* Samples after the step until it is accepted: fewer than a window, and many. */
	static const unsigned waits[] = { 12, 50, 5000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		struct pace *pace = pace_default();

		(void)feed(pace, 1, 300);
		assert_false(pace_accept(pace));
		assert_int_equal(feed(pace, 1.5, waits[i]).slow, 1);
		assert_true(pace_accept(pace));
		assert_false(look(pace).slow);
		assert_int_equal(look(pace).baseline_ns, ITER_NS * 3 / 2);
		assert_int_equal(look(pace).best_ns, ITER_NS);
		assert_int_equal(feed(pace, 1.5, 1000).slow, 0);
		assert_int_equal(feed(pace, 2, 100).slow, 1); /* the next */
		pace_free(pace);
	}
}

/* Slowly enough for the history of 2,000 iterations to follow. */
static void pace_is_compared_with_the_best_of_all_eras(void **state)
{
	struct pace *pace = pace_default();
	unsigned slow = 0;

	(void)state;
	(void)feed(pace, 1, 10000);
	for (unsigned i = 0; i < 20000; i++) /* 10 % */
		slow += feed(pace, 1 + 0.000005 * i, 1).slow;
	assert_int_equal(slow, 1);
	assert_int_equal(look(pace).baseline_ns, ITER_NS);
	pace_free(pace);
}

static void pace_is_not_slow_by_less_than_a_large_threshold(void **state)
{
	struct pace_config config = detector_default_config.pace;

	(void)state;
	config.slow_frac = 2; /* --slowdown 200: three times as long */
	for (unsigned kind = 0; kind < 2; kind++) {
		struct pace *pace = pace_new(&config);

		assert_non_null(pace);
		assert_int_equal(feed(pace, 1, 500).slow, 0);
		/* all, or one in eight by five times as much */
		for (unsigned i = 0; i < 2000; i++)
			assert_int_equal(
				feed(pace, kind == 0 ? 2.8 : (i % 8 == 0 ? 14 : 1), 1).slow, 0);
		assert_true(kind != 0 || feed(pace, 3.3, 300).slow == 1);
		pace_free(pace);
	}
}

static void pace_sees_a_slow_drift(void **state)
{
	struct pace *pace = pace_default();
	unsigned slow_at = 0;

	(void)state;
	(void)feed(pace, 1, 300);
	for (unsigned i = 0; i < 1000 && slow_at == 0; i++) { /* 10 % in 1000 iterations */
		if (feed(pace, 1 + 0.0001 * i, 1).slow > 0)
			slow_at = i;
	}
	assert_in_range(slow_at, 500, 600); /* 5 % is reached at 500, by the mean 25 later */
	pace_free(pace);
}

static void pace_leaves_checkpoints_out(void **state)
{
	struct pace *pace = pace_default();
	struct pace_view view;

	(void)state;
	(void)feed(pace, 1, 300);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(feed(pace, 40, 1).slow, 0);
		assert_int_equal(feed(pace, 1, 99).slow, 0);
	}
	pace_look(pace, &view);
	assert_int_equal(view.pauses, 20);
	assert_int_equal(view.mean_ns, ITER_NS);
	assert_int_equal(feed(pace, 1.1, 100).slow, 1); /* and still sees 10 % */
	pace_free(pace);
}

static void pace_learns_an_evaluation_every_seventh_iteration(void **state)
{
	struct pace *pace = pace_default();
	struct pace_view view;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(feed(pace, 1, 6).slow, 0);
		assert_int_equal(feed(pace, 5, 1).slow, 0);
	}
	pace_look(pace, &view);
	assert_int_equal(view.mean_ns, ITER_NS);
	for (unsigned i = 0, slow = 0; i < 10; i++) {
		slow += feed(pace, 1.1, 6).slow;
		slow += feed(pace, 5, 1).slow;
		assert_true(i < 9 || slow == 1);
	}
	pace_free(pace);
}

/* Say, collections of garbage that take four iterations' time: each n-th, then by chance. */
static void pace_sees_long_iterations_that_begin_to_come(void **state)
{
	(void)state;
	for (unsigned before = 120; before <= 600; before += 240) {
		for (unsigned period = 2; period <= 8; period++) {
			struct pace *pace = pace_default();
			uint64_t rng = period;
			unsigned slow = 0;

			(void)feed(pace, 1, before);
			for (unsigned i = 0; i < 300; i++)
				slow += feed(pace, i % period == 0 ? 5 : 1, 1).slow;
			assert_int_equal(slow, 1);
			pace_reset(pace);
			slow = feed(pace, 1, before).slow;
			for (unsigned i = 0; i < 400; i++)
				slow += feed(pace, splitmix_next(&rng) % period == 0 ? 5 : 1, 1)
						.slow;
			assert_int_equal(slow, 1);
			pace_free(pace);
		}
	}
}

/* Times of a healthy job with some kind of jitter around 1. */
static double jitter(unsigned kind, uint64_t *rng, double *memory)
{
	switch (kind) {
	case 0: /* normal, 10 % */
		return fmax(0.3, 1 + 0.10 * rng_normal(rng));
	case 1: /* log-normal, 20 %: skewed as real times are */
		return exp(0.20 * rng_normal(rng));
	case 2: /* slow noise: correlation 0.8 from one to the next, 10 % */
		*memory = 0.8 * *memory + 0.06 * rng_normal(rng);
		return fmax(0.3, 1 + *memory);
	case 3: /* 2 % of the iterations take five times as long */
		return splitmix_uniform(rng) < 0.02 ? 5 : exp(0.05 * rng_normal(rng));
	default: /* rare hiccups of any length on top of 5 % */
		return exp(0.05 * rng_normal(rng)) +
		       (splitmix_uniform(rng) < 0.01) * 10 * splitmix_uniform(rng);
	}
}

/* Seeds of each kind; PT_SEEDS raises it for a long run by hand. */
static unsigned seed_cnt(void)
{
	const char *text = getenv("PT_SEEDS");

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 60;
}

static void pace_is_never_slow_from_jitter_alone(void **state)
{
	unsigned false_alarms[5] = { 0 };

	(void)state;
	for (unsigned kind = 0; kind < ARRAY_SIZE(false_alarms); kind++) {
		for (unsigned seed = 0; seed < seed_cnt(); seed++) {
			struct pace *pace = pace_default();
			uint64_t rng = seed * 1000003u + kind;
			double memory = 0;

			for (unsigned i = 0; i < 2000; i++)
				false_alarms[kind] +=
					feed(pace, jitter(kind, &rng, &memory), 1).slow;
			pace_free(pace);
		}
	}
	if (getenv("PT_SEEDS") != NULL)
		printf("false alarms: normal %u lognormal %u slow noise %u spikes %u hiccups %u\n",
		       false_alarms[0], false_alarms[1], false_alarms[2], false_alarms[3],
		       false_alarms[4]);
	for (unsigned kind = 0; kind < ARRAY_SIZE(false_alarms); kind++)
		assert_int_equal(false_alarms[kind], 0);
}

static void pace_sees_a_step_through_jitter(void **state)
{
	static const double factors[] = { 1.30, 1.80, 1.70, 1.30, 1.60 };
	unsigned missed = 0, runs = 0;

	(void)state;
	for (unsigned kind = 0; kind < ARRAY_SIZE(factors); kind++) {
		for (unsigned seed = 0; seed < 20; seed++, runs++) {
			struct pace *pace = pace_default();
			uint64_t rng = seed * 7919u + kind;
			double memory = 0;
			unsigned slow = 0;

			for (unsigned i = 0; i < 400; i++)
				slow += feed(pace, jitter(kind, &rng, &memory), 1).slow;
			assert_int_equal(slow, 0);
			for (unsigned i = 0; i < 200; i++)
				slow += feed(pace, jitter(kind, &rng, &memory) * factors[kind], 1)
						.slow;
			missed += slow == 0;
			pace_free(pace);
		}
	}
	assert_int_equal(missed, 0);
}

/* Blocks of five iterations that differ by a factor of two: their noise hides a step of 1.7. */
static unsigned feed_blocks(struct pace *pace, double factor, unsigned cnt)
{
	unsigned first_slow = 0;

	for (unsigned i = 0; i < cnt; i++) {
		struct outcome outcome = feed(pace, factor * (i / 5 % 2 == 0 ? 0.7 : 1.4), 1);

		if (outcome.slow > 0 && first_slow == 0)
			first_slow = i + 1;
	}
	return first_slow;
}

static void pace_calls_clearly_longer_iterations_slow_whatever_the_noise(void **state)
{
	struct pace *pace = pace_default();
	struct pace_view view;

	(void)state;
	assert_int_equal(feed_blocks(pace, 1, 120), 0);
	pace_look(pace, &view);
	assert_true(view.threshold_ns > view.baseline_ns * 7 / 4);
	assert_in_range(feed_blocks(pace, 1.7, 200), 50, 120);
	feed_blocks(pace, 1.7, 1000);
	pace_look(pace, &view);
	assert_true(view.slow);
	assert_in_range(view.slow_since, 110, 130);
	feed_blocks(pace, 1, 700);
	pace_look(pace, &view);
	assert_false(view.slow);
	pace_free(pace);
}

/* Iterations of two seconds, with much noise of their own, shortly after the first window. */
static void pace_calls_few_much_longer_iterations_slow_whatever_their_noise(void **state)
{
	struct pace *pace = pace_default();
	struct pace_view view;

	(void)state;
	assert_int_equal(feed_blocks(pace, 1, 75), 0);
	assert_int_equal(feed_blocks(pace, 20, 7) + feed(pace, 200, 1).slow, 0); /* also a pause */
	assert_in_range(feed_blocks(pace, 20, 40), 1, 18);
	pace_look(pace, &view);
	assert_in_range(view.slow_since, 70, 85);
	pace_free(pace);
}

/* Two pauses of half a minute are left out; the third is not, but what follows it is short. */
static void pace_does_not_take_few_pauses_for_a_slowdown(void **state)
{
	struct pace *pace = pace_default();
	unsigned slow = 0;

	(void)state;
	assert_int_equal(feed_blocks(pace, 1, 75), 0);
	for (unsigned i = 0; i < 3; i++) {
		slow += feed(pace, 300, 1).slow;
		slow += feed_blocks(pace, 1, 5) > 0;
	}
	assert_int_equal(slow + feed_blocks(pace, 1, 100), 0);
	pace_free(pace);
}

/*
 * A machine whose speed changes by up to a fifth every 15 iterations; one of four samples of a batch
 * waits from iteration 92 on. Returns whether that was found.
 */
static bool finds_random_waits(const struct pace_config *config, uint64_t seed, double wait)
{
	struct pace *pace = pace_new(config);
	uint64_t rng = seed;
	double speed = 1;
	bool slow = false;

	for (unsigned i = 0; i < 400; i++) {
		double factor;

		if (i % 15 == 0)
			speed = 0.8 + 0.4 * splitmix_uniform(&rng);
		factor = speed * (0.92 + 0.16 * splitmix_uniform(&rng));
		for (unsigned sample = 0; sample < 4 && i >= 92; sample++)
			factor += wait * (splitmix_uniform(&rng) < 0.25);
		slow |= feed(pace, 2 * factor, 1).slow > 0;
	}
	pace_free(pace);
	return slow;
}

static void pace_calls_lasting_longer_iterations_slow_whatever_the_noise(void **state)
{
	struct pace_config deaf = detector_default_config.pace;
	unsigned found = 0, by_noise = 0, healthy = 0, healthy_by_noise = 0;

	(void)state;
	deaf.clear_factor = (double)INFINITY;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		found += finds_random_waits(&detector_default_config.pace, seed, 0.55);
		by_noise += finds_random_waits(&deaf, seed, 0.55);
		healthy += finds_random_waits(&detector_default_config.pace, seed, 0);
		healthy_by_noise += finds_random_waits(&deaf, seed, 0);
	}
	assert_in_range(found, 95, 100);
	assert_in_range(by_noise, 70, found - 5);
	assert_in_range(healthy, 0, healthy_by_noise + 1);
}

static void pace_refuses_a_configuration_out_of_range(void **state)
{
	struct pace_config config = detector_default_config.pace;

	(void)state;
	config.window_cnt = PACE_WINDOW_MAX + 1;
	assert_null(pace_new(&config));
	config.window_cnt = 4;
	assert_null(pace_new(&config));
}

int run_pace_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace_is_not_slow_while_the_job_warms_up),
		cmocka_unit_test(pace_finds_a_step_change_in_few_iterations),
		cmocka_unit_test(pace_leaves_four_percent_alone),
		cmocka_unit_test(pace_reports_one_slowdown_once_and_its_end),
		cmocka_unit_test(pace_that_stays_slow_never_becomes_normal),
		cmocka_unit_test(pace_knows_when_the_slowdown_began),
		cmocka_unit_test(pace_begins_a_second_slowdown_after_the_first),
		cmocka_unit_test(pace_does_not_count_noise_before_a_large_step_as_slow),
		cmocka_unit_test(pace_that_is_accepted_is_the_baseline),
		cmocka_unit_test(pace_is_compared_with_the_best_of_all_eras),
		cmocka_unit_test(pace_is_not_slow_by_less_than_a_large_threshold),
		cmocka_unit_test(pace_sees_a_slow_drift),
		cmocka_unit_test(pace_leaves_checkpoints_out),
		cmocka_unit_test(pace_learns_an_evaluation_every_seventh_iteration),
		cmocka_unit_test(pace_sees_long_iterations_that_begin_to_come),
		cmocka_unit_test(pace_is_never_slow_from_jitter_alone),
		cmocka_unit_test(pace_sees_a_step_through_jitter),
		cmocka_unit_test(pace_calls_clearly_longer_iterations_slow_whatever_the_noise),
		cmocka_unit_test(pace_calls_few_much_longer_iterations_slow_whatever_their_noise),
		cmocka_unit_test(pace_does_not_take_few_pauses_for_a_slowdown),
		cmocka_unit_test(pace_calls_lasting_longer_iterations_slow_whatever_the_noise),
		cmocka_unit_test(pace_refuses_a_configuration_out_of_range),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
