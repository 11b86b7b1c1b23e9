/* SPDX-License-Identifier: Apache-2.0 */
/* Earlier runs in a real store, and the judgment on random runs. */
#include "memory/earlier.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define START_S 1700000000LL
#define DAY_S 86400LL
#define MS NSEC_PER_MSEC

static char folder[64];
static struct store *store;
static struct err err;
static unsigned job_cnt;

static int set_up(void **state)
{
	char where[128];

	(void)state;
	job_cnt = 0;
	(void)snprintf(folder, sizeof(folder), "/tmp/earlier_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(where, sizeof(where), "%s/store.db", folder);
	assert_int_equal(store_open(where, &store, &err), 0);
	assert_int_equal(store_begin(store, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	assert_int_equal(store_commit(store, &err), 0);
	store = store_close(store);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* A run of two minutes, on the next day; returns its key. */
struct run {
	const char *command, *host, *machine, *verdict;
	uint32_t workers;
	int64_t iteration_ns;
	bool flagged, runs;
	int64_t start_s; /* 0: the next day */
};

static void put_event(const char *key, uint64_t place, const char *kind, const char *text)
{
	const struct store_event event = {
		.kind = kind, .text = text, .place = place, .at_ns = START_S * NSEC_PER_SEC
	};

	assert_int_equal(store_put_event(store, key, &event, &err), 0);
}

static const char *put_run(const struct run *run)
{
	static char key[STORE_KEY_BYTES];
	int64_t start_s = run->start_s != 0 ? run->start_s : START_S + job_cnt * DAY_S;
	struct store_job job = { .key = key,
				 .name = "train",
				 .host = run->host != NULL ? run->host : "node1",
				 .owner = "ann",
				 .command = run->command != NULL ? run->command : "a.py --batch 8",
				 .started_ns = start_s * NSEC_PER_SEC,
				 .seen_ns = (start_s + 120) * NSEC_PER_SEC,
				 .ended_ns = run->runs ? 0 : (start_s + 120) * NSEC_PER_SEC,
				 .workers = run->workers != 0 ? run->workers : 4,
				 .step = 5000,
				 .verdict = run->verdict != NULL ? run->verdict : "healthy",
				 .reason = "",
				 .state = "ended" };

	(void)snprintf(key, sizeof(key), "%012x", ++job_cnt);
	assert_int_equal(store_put_job(store, &job, &err), 0);
	for (int i = 0; i < 120; i++) {
		struct store_pace pace = { .at_s = start_s + i,
					   .step = (uint64_t)i * 40,
					   .cnt = 10,
					   .sum_ns = 10 * (run->iteration_ns + i % 5 * MS / 10),
					   .min_ns = run->iteration_ns,
					   .max_ns = run->iteration_ns };

		assert_int_equal(store_add_pace(store, key, &pace, &err), 0);
	}
	put_event(key, 1, "machine", run->machine != NULL ? run->machine : "EPYC, 8 CPUs");
	if (run->flagged)
		put_event(key, 2, "slower", "2x");
	return key;
}

static void put_runs(unsigned cnt, int64_t iteration_ns)
{
	for (unsigned i = 0; i < cnt; i++)
		(void)put_run(&(struct run){ .iteration_ns = iteration_ns + i % 3 * MS / 10 });
}

/* A pace of a run that varies by 5 %. */
static struct runpace_sum pace_of(double iteration_ns)
{
	return (struct runpace_sum){ .known = true,
				     .median_ns = (int64_t)iteration_ns,
				     .low_ns = (int64_t)(iteration_ns * 0.97),
				     .high_ns = (int64_t)(iteration_ns * 1.03),
				     .row_cnt = 50 };
}

static struct earlier_answer judge(double iteration_ns)
{
	const struct runpace_sum pace = pace_of(iteration_ns);
	int64_t now_ns = (START_S + 1000 * DAY_S) * NSEC_PER_SEC;
	const struct earlier_subject subject = { .key = "ffffffffffff",
						 .name = "train",
						 .command = "a.py --batch 8",
						 .host = "node1",
						 .machine = "EPYC, 8 CPUs",
						 .started_ns = now_ns,
						 .now_ns = now_ns };
	struct earlier earlier = { .runs = { 0 } };
	struct earlier_answer ret;

	assert_int_equal(earlier_read(store, &subject, &earlier, &err), 0);
	earlier_judge(&earlier, 4, &pace, false, &ret);
	earlier_done(&earlier);
	return ret;
}

static void twice_as_slow_as_five_earlier_runs_is_slower(void **state)
{
	struct earlier_answer answer;
	struct str text = { 0 };

	(void)state;
	put_runs(5, 20 * MS);
	answer = judge(40.4 * MS);
	assert_int_equal(answer.verdict, EARLIER_SLOWER);
	assert_int_equal(answer.used_cnt, 5);
	earlier_append_clause(&answer, &text);
	assert_string_equal(str_borrow(&text),
			    "2.0x slower than 5 earlier runs of this name: 40.4 ms "
			    "an iteration, 20.3 ms (20.2 to 20.4) then");
	str_done(&text);
	assert_int_equal(judge(10 * MS).verdict, EARLIER_FASTER);
	assert_int_equal(judge(20.8 * MS).verdict, EARLIER_ALIKE);
}

static void no_earlier_run_says_nothing(void **state)
{
	(void)state;
	assert_int_equal(judge(40 * MS).verdict, EARLIER_NONE);
}

static void two_earlier_runs_are_too_few(void **state)
{
	struct earlier_answer answer;
	struct str text = { 0 };

	(void)state;
	put_runs(2, 20 * MS);
	answer = judge(40 * MS);
	assert_int_equal(answer.verdict, EARLIER_UNKNOWN);
	earlier_append_whys(&answer, &text);
	assert_string_equal(str_borrow(&text),
			    "2 of the same kind are too few to tell, 3 are needed");
	str_done(&text);
}

static void runs_that_differ_do_not_count_and_are_named(void **state)
{
	static const struct run runs[] = {
		{ .command = "a.py --batch 4", .iteration_ns = 20 * MS },
		{ .workers = 8, .iteration_ns = 20 * MS },
		{ .machine = "EPYC, 4 CPUs", .iteration_ns = 20 * MS },
		{ .machine = "unknown", .iteration_ns = 20 * MS },
		{ .verdict = "abnormal", .iteration_ns = 20 * MS },
		{ .flagged = true, .iteration_ns = 20 * MS },
	};
	struct earlier_answer answer;
	struct str text = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		(void)put_run(&runs[i]);
	answer = judge(40 * MS);
	assert_int_equal(answer.verdict, EARLIER_UNKNOWN);
	assert_int_equal(answer.used_cnt, 0);
	earlier_append_whys(&answer, &text);
	assert_string_equal(
		str_borrow(&text),
		"1 had another command, 1 had another number of ranks, 2 ran on another kind of "
		"machine, or one not known, 1 had findings or were slow, 1 were slower than their "
		"own earlier runs");
	str_done(&text);
}

static void another_host_of_the_same_kind_counts(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		(void)put_run(&(struct run){ .host = "node2", .iteration_ns = 20 * MS });
	assert_int_equal(judge(40 * MS).verdict, EARLIER_SLOWER);
}

static void runs_that_shared_their_machine_do_not_count(void **state)
{
	struct earlier_answer answer;

	(void)state;
	put_runs(3, 20 * MS);
	for (int i = 0; i < 3; i++)
		(void)put_run(&(struct run){ .iteration_ns = 40 * MS,
					     .start_s = START_S + 500 * DAY_S + 60 * i });
	answer = judge(40 * MS);
	assert_int_equal(answer.whys[EARLIER_BESIDE], 3);
	assert_int_equal(answer.verdict, EARLIER_SLOWER);
}

static void a_pace_that_was_slower_five_times_is_the_usual_one(void **state)
{
	struct earlier_answer answer;

	(void)state;
	put_runs(5, 20 * MS);
	for (int i = 0; i < 4; i++)
		(void)put_run(&(struct run){ .iteration_ns = 40 * MS, .flagged = true });
	assert_int_equal(judge(40 * MS).verdict, EARLIER_SLOWER);
	(void)put_run(&(struct run){ .iteration_ns = 40 * MS, .flagged = true });
	answer = judge(40 * MS);
	assert_int_equal(answer.verdict, EARLIER_ALIKE);
	assert_int_equal(answer.used_cnt, 5);
	assert_int_equal(judge(80 * MS).verdict, EARLIER_SLOWER);
}

static void a_run_with_another_job_beside_it_is_not_judged(void **state)
{
	const struct runpace_sum pace = pace_of(40 * MS);
	struct earlier earlier = { .runs = { 0 } };
	struct earlier_answer answer;

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct earlier_run run = { .workers = 4, .pace = pace_of(20 * MS) };

		assert_int_equal(vec_push(&earlier.runs, run), 0);
	}
	earlier_judge(&earlier, 4, &pace, false, &answer);
	assert_int_equal(answer.verdict, EARLIER_SLOWER);
	earlier_judge(&earlier, 4, &pace, true, &answer);
	assert_int_equal(answer.verdict, EARLIER_UNKNOWN);
	earlier_done(&earlier);
}

static double normal(unsigned *seed)
{
	double u = (rand_r(seed) + 1.0) / (RAND_MAX + 2.0), v = rand_r(seed) / (RAND_MAX + 1.0);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Of runs that differ by chance alone, whatever by how much, few are called slower. */
static void normal_variation_between_runs_is_not_called_slower(void **state)
{
	static const double deviations[] = { 0.01, 0.05, 0.15, 0.4 };
	static const size_t cnts[] = { 3, 5, 10, 20 };
	unsigned seed = 1;

	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(deviations); d++) {
		for (size_t c = 0; c < ARRAY_SIZE(cnts); c++) {
			size_t slower = 0, tries = 10000;

			for (size_t t = 0; t < tries; t++) {
				struct earlier earlier = { .runs = { 0 } };
				struct earlier_answer answer;
				struct runpace_sum pace;

				for (size_t i = 0; i <= cnts[c]; i++) {
					struct earlier_run run = { .workers = 4 };

					pace = pace_of(20 * MS *
						       exp(deviations[d] * normal(&seed)));
					run.pace = pace;
					if (i < cnts[c])
						assert_int_equal(vec_push(&earlier.runs, run), 0);
				}
				earlier_judge(&earlier, 4, &pace, false, &answer);
				slower += answer.verdict == EARLIER_SLOWER;
				earlier_done(&earlier);
			}
			/* Expected: 1 in 1,000 or fewer; 25 of 10,000 is beyond chance. */
			assert_true(slower < 25);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(twice_as_slow_as_five_earlier_runs_is_slower,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_earlier_run_says_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_earlier_runs_are_too_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(runs_that_differ_do_not_count_and_are_named, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(another_host_of_the_same_kind_counts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(runs_that_shared_their_machine_do_not_count, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_pace_that_was_slower_five_times_is_the_usual_one,
						set_up, tear_down),
		cmocka_unit_test(a_run_with_another_job_beside_it_is_not_judged),
		cmocka_unit_test(normal_variation_between_runs_is_not_called_slower),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
