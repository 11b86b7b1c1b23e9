/* SPDX-License-Identifier: Apache-2.0 */
/* What garbage collections cost a job, alone, by turns and together. */
#include "base/test_random.h"
#include "localize/test_fixture.h"

#include <math.h>

#define ITERATIONS 8
#define WORKERS_MAX 4

static const struct test_place gc = { NULL, KIND_GC, "gc (generation 2)", CLASS_HOST };

/* Iterations of 20 ms and a collective; worker w collects for ms[i][w] in iteration i. */
static void play(size_t workers, const double ms[ITERATIONS][WORKERS_MAX])
{
	test_job_init(&job, workers, 0, 0);
	for (size_t i = 0; i < ITERATIONS; i++) {
		test_iterate(&job);
		for (size_t w = 0; w < workers; w++) {
			test_work(&job, w, &test_mm, 20);
			if (ms[i][w] > 0)
				test_work(&job, w, &gc, ms[i][w]);
		}
		test_meet(&job, 0, 0, workers, 2);
	}
	test_finish(&job);
	report = test_localize(&job, NULL);
}

static double gain_of_collections(void)
{
	const struct finding *f = test_find(&report, "garbage-collection");

	assert_non_null(f);
	return f->gain_ms_per_iteration;
}

static void collections_by_turns_cost_their_sum(void **state)
{
	double ms[ITERATIONS][WORKERS_MAX] = { { 0 } };

	(void)state;
	for (size_t i = 0; i < ITERATIONS; i++)
		ms[i][i % 4] = 40;
	play(4, ms);
	assert_float_equal(gain_of_collections(), 40, 0.5);
}

/* What both collect at the same time is in the loss of neither. */
static void collections_at_the_same_time_cost_the_longest(void **state)
{
	double ms[ITERATIONS][WORKERS_MAX] = { { 0 } };

	(void)state;
	for (size_t i = 0; i < ITERATIONS; i++) {
		ms[i][0] = i % 2 == 0 ? 60 : 40;
		ms[i][1] = i % 2 == 0 ? 40 : 60;
	}
	play(2, ms);
	assert_float_equal(gain_of_collections(), 60, 0.5);
}

/* Without collections every iteration takes as long: the gain is the mean of the longest. */
static void any_collections_cost_what_a_replay_without_them_saves(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		double ms[ITERATIONS][WORKERS_MAX] = { { 0 } }, sum = 0;
		uint64_t random = seed;

		for (size_t i = 0; i < ITERATIONS; i++) {
			double longest = 0;

			for (size_t w = 0; w < 4; w++) {
				ms[i][w] = (double)(30 + test_below(&random, 50));
				longest = fmax(longest, ms[i][w]);
			}
			sum += longest;
		}
		play(4, ms);
		if (test_find(&report, "garbage-collection") != NULL &&
		    test_find(&report, "garbage-collection")->all_workers)
			assert_float_equal(gain_of_collections(), sum / ITERATIONS, 1);
		(void)done(NULL);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(collections_by_turns_cost_their_sum),
		TEST(collections_at_the_same_time_cost_the_longest),
		TEST(any_collections_cost_what_a_replay_without_them_saves),
	};

	return cmocka_run_group_tests_name("collections", tests, NULL, NULL);
}
